"""Find rights that were revoked after a backup was created, and that restoring this backup has granted again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from musicsvc.store.backups.verify import address, open_immutable

if TYPE_CHECKING:
    from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class RegainedRights:
    """The ids of tokens that are valid again, and the e-mails of accounts that regained rights."""

    tokens: list[int]
    accounts: list[str]


def find(database: Path, before: Path) -> RegainedRights | None:
    """Return the rights that exist in `database` but not in `before`, or None if a file cannot be read.

    Neither file may be in use.
    """
    try:
        connection = open_immutable(database)
        try:
            connection.execute("ATTACH ? AS was", (address(before),))
            tokens = [int(row[0]) for row in connection.execute(TOKENS)]
            return RegainedRights(tokens, [str(row[0]) for row in connection.execute(ACCOUNTS)])
        finally:
            connection.close()
    except apsw.Error:
        return None
