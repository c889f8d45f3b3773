"""What a restore brought back to life: tokens and rights that had been taken since the backup was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from musicsvc.store.backups.verify import address, opened

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
class Revived:
    """Ids of tokens that are valid again, addresses of accounts that have more rights again."""

    tokens: list[int]
    accounts: list[str]


def since(database: Path, before: Path) -> Revived | None:
    """What the database grants and the one that it replaced did not; None where that one cannot be read.

    Nobody may use either of them meanwhile.
    """
    try:
        connection = opened(database)
        try:
            connection.execute("ATTACH ? AS was", (address(before),))
            tokens = [int(row[0]) for row in connection.execute(TOKENS)]
            return Revived(tokens, [str(row[0]) for row in connection.execute(ACCOUNTS)])
        finally:
            connection.close()
    except apsw.Error:
        return None
