"""The numbers of listens that were refused, by account and reason: players get no answer about single listens."""

from collections.abc import Mapping, Sequence
from typing import Literal

from musicsvc.store.engine import bulk
from musicsvc.store.models import RefusedListen

Reason = Literal["off", "old", "pruned", "future", "half_minute", "day_full", "waiting"]
ADD = """
    ON CONFLICT (user_id, reason) DO UPDATE
    SET listens = refused_listen.listens + excluded.listens, last_at = excluded.last_at
"""


def add(counts: Mapping[tuple[int, Reason], int], now: int) -> None:
    """Add numbers of refused listens, by account and reason."""
    rows = [(account, reason, number, now) for (account, reason), number in sorted(counts.items()) if number]
    bulk.insert(RefusedListen, ("user", "reason", "listens", "last_at"), rows, ADD)


def of_account(account: int) -> Sequence[tuple[Reason, int, int]]:
    """Return reason, number and time of the last refusal of the account's listens, the most frequent first."""
    refused = RefusedListen
    rows = refused.select(refused.reason, refused.listens, refused.last_at).where(refused.user == account)
    return [*rows.order_by(refused.listens.desc(), refused.reason).tuples().iterator()]
