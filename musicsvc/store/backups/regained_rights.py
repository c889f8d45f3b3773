"""Find rights that were revoked after a backup was created, and that restoring this backup has granted again."""

from dataclasses import dataclass
from pathlib import Path

import apsw

from musicsvc.store.backups.verify import address, open_immutable

TOKENS = """
SELECT token.id FROM main.token LEFT JOIN was.token AS before ON before.id = token.id
WHERE token.revoked_at IS NULL AND (before.id IS NULL OR before.revoked_at IS NOT NULL OR before.digest <> token.digest)
ORDER BY token.id
"""
ACCOUNTS = """
SELECT account.email FROM main.account JOIN was.account AS before ON before.id = account.id
WHERE (account.suspended_at IS NULL AND before.suspended_at IS NOT NULL) OR account.api_access > before.api_access
    OR account.reports_plays > before.reports_plays OR account.admin > before.admin
ORDER BY account.id
"""

SHARE_LINKS = """
SELECT link.id, account.email FROM main.report_link AS link JOIN main.account AS account ON account.id = link.user_id
LEFT JOIN was.report_link AS before ON before.id = link.id AND before.created_at = link.created_at
WHERE before.id IS NULL AND link.expires_at > ? ORDER BY link.id
"""


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link to a shared report, with the e-mail of the account that can end it."""

    id: int
    account: str


@dataclass(frozen=True, slots=True)
class RegainedRights:
    """The ids of tokens that are valid again, the e-mails of accounts that regained rights, links that work again."""

    tokens: list[int]
    accounts: list[str]
    share_links: list[ShareLink]


def find(database: Path, before: Path, *, now: int) -> RegainedRights | None:
    """Return the rights that exist in `database` but not in `before`, or None if a file cannot be read.

    Links that have expired at `now` are left out. Neither file may be in use.
    """
    try:
        connection = open_immutable(database)
        try:
            connection.execute("ATTACH ? AS was", (address(before),))
            tokens = [int(row[0]) for row in connection.execute(TOKENS)]
            accounts = [str(row[0]) for row in connection.execute(ACCOUNTS)]
            share_links = [ShareLink(*row) for row in connection.execute(SHARE_LINKS, (now,))]
            return RegainedRights(tokens, accounts, share_links)
        finally:
            connection.close()
    except apsw.Error:
        return None
