"""Enforcement actions of the abuse monitor: tokens that it revoked and accounts that it suspended."""

from typing import NamedTuple

from musicsvc.store.engine.sql import fetch

BEYOND_ALL = 2**63 - 1
ACTIONS = """
    SELECT e.id, e.at, e.kind, e.account_id, a.email, e.token_id, t.name, t.last_four, e.reason, e.actor,
           coalesce(CASE e.kind WHEN 'token.revoked' THEN t.revoked_at ELSE a.suspended_at END = e.at, 1 = 0)
    FROM security_event e LEFT JOIN account a ON a.id = e.account_id LEFT JOIN token t ON t.id = e.token_id
    WHERE e.actor = 'abuse' AND e.id < ? ORDER BY e.id DESC LIMIT ?
"""


class EnforcementAction(NamedTuple):
    """A revocation of a token, or the suspension of an account if `token_id` is None. `in_force`: not undone since."""

    id: int  # of the security event
    at: int
    kind: str
    account_id: int
    email: str | None
    token_id: int | None
    token_name: str | None
    last_four: str | None
    reason: str | None
    actor: str
    in_force: bool


def newest(*, limit: int, before: int | None = None) -> list[EnforcementAction]:
    """Return the newest `limit` actions whose ids are below `before`, newest first."""
    rows = fetch(ACTIONS, BEYOND_ALL if before is None else before, limit)
    return [EnforcementAction._make((*row[:10], bool(row[10]))) for row in rows]
