"""Find what was revoked, deleted or erased after a backup was created, and is back since the backup was restored."""

from contextlib import closing
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
DELETED = """
SELECT account.email FROM main.account WHERE account.id NOT IN (SELECT id FROM was.account) AND account.id IN
    (SELECT account_id FROM was.security_event WHERE kind = 'account.deleted') ORDER BY account.id
"""
ERASED = """
SELECT substr(listener.key, 8) FROM main.listener JOIN was.listener AS before ON before.id = listener.id
WHERE substr(listener.key, 1, 7) = 'opaque:' AND substr(before.key, 1, 7) = 'erased:' ORDER BY listener.id
"""


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link to a shared report, with the e-mail of the account that can end it."""

    id: int
    account: str


@dataclass(frozen=True, slots=True)
class RegainedRights:
    """The ids of tokens that are valid again, the e-mails of accounts that regained rights, links that work again.

    Also the e-mails of deleted accounts and the names of erased listeners that are back.
    """

    tokens: list[int]
    accounts: list[str]
    share_links: list[ShareLink]
    deleted_accounts: list[str]
    erased_listeners: list[str]


def find(database: Path, before: Path, *, now: int) -> RegainedRights | None:
    """Return the rights that exist in `database` but not in `before`, or None if a file cannot be read.

    Links that have expired at `now` are left out. Neither file may be in use.
    """
    try:
        with closing(open_immutable(database)) as connection:
            connection.execute("ATTACH ? AS was", (address(before),))
            tokens = [int(row[0]) for row in connection.execute(TOKENS)]
            accounts = [str(row[0]) for row in connection.execute(ACCOUNTS)]
            share_links = [ShareLink(*row) for row in connection.execute(SHARE_LINKS, (now,))]
            deleted, erased = ([str(row[0]) for row in connection.execute(query)] for query in (DELETED, ERASED))
            return RegainedRights(tokens, accounts, share_links, deleted, erased)
    except apsw.Error:
        return None
