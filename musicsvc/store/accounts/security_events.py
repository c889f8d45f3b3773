"""Security events: written in the transaction of the act itself, never dropped, never pruned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from musicsvc.store.models import SecurityEvent

Kind = Literal[
    "account.created",
    "account.suspended",
    "account.reinstated",
    "password.set",
    "access.requested",
    "access.approved",
    "access.denied",
    "access.granted",
    "access.revoked",
    "token.created",
    "token.regenerated",
    "token.revoked",
    "token.reinstated",
    "activity.lost",
]
Actor = Literal["cli", "api", "abuse", "fixtures", "server"]


class Event(NamedTuple):
    """What was done, when, to whom, by whom and why."""

    at: int
    kind: str
    account_id: int | None
    token_id: int | None
    actor: str
    reason: str | None


COLUMNS = tuple(getattr(SecurityEvent, name) for name in Event._fields)


def add(
    kind: Kind,
    *,
    now: int,
    actor: Actor,
    account_id: int | None = None,
    token_id: int | None = None,
    reason: str | None = None,
) -> None:
    """Note the act; in the unit that does it."""
    SecurityEvent.insert(
        at=now, kind=kind, account_id=account_id, token_id=token_id, actor=actor, reason=reason
    ).execute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which events are wanted; what is None narrows nothing. `since` is within, `until` beyond."""

    account_id: int | None = None
    token_id: int | None = None
    since: int | None = None
    until: int | None = None


ALL = Filter()


def find(wanted: Filter = ALL, *, limit: int) -> list[Event]:
    """The newest events that are wanted, so many at most, oldest of them first."""
    rows = _wanted(wanted).order_by(SecurityEvent.at.desc(), SecurityEvent.id.desc()).limit(limit)
    return [Event._make(row) for row in rows.tuples()][::-1]


def last_id() -> int:
    """The id of the event that was written last, 0 where there is none."""
    row = SecurityEvent.select(SecurityEvent.id).order_by(SecurityEvent.id.desc()).tuples().first()
    return int(row[0]) if row else 0


def written_after(event_id: int, wanted: Filter = ALL) -> list[tuple[int, Event]]:
    """The events with higher ids that are wanted, with their ids, in the order in which they were written."""
    rows = _wanted(wanted, SecurityEvent.id).where(SecurityEvent.id > event_id).order_by(SecurityEvent.id)
    return [(row[0], Event._make(row[1:])) for row in rows.tuples()]


def _wanted(wanted: Filter, *more: Any) -> Any:
    query = SecurityEvent.select(*more, *COLUMNS)
    for name in ("account_id", "token_id"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(getattr(SecurityEvent, name) == value)
    if wanted.since is not None:
        query = query.where(SecurityEvent.at >= wanted.since)
    return query if wanted.until is None else query.where(SecurityEvent.at < wanted.until)
