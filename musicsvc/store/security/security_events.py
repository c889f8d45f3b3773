"""The permanent log of security events. Each event is written in the same transaction as the logged action."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from musicsvc.store.models import SecurityEvent

Kind = Literal[
    "account.created",
    "account.edited",
    "account.deleted",
    "account.suspended",
    "account.reinstated",
    "admin.granted",
    "admin.revoked",
    "password.set",
    "password.link_created",
    "access.requested",
    "access.approved",
    "access.denied",
    "access.granted",
    "access.revoked",
    "token.created",
    "token.regenerated",
    "token.revoked",
    "token.reinstated",
    "report.shared",
    "report.unshared",
    "artist.assigned",
    "artist.unassigned",
    "artist.offered",
    "artist.offer_refused",
    "artist.offer_withdrawn",
    "artist.verified",
    "artist.unverified",
    "artist.deleted",
    "album.deleted",
    "track.deleted",
    "artist.merged",
    "artist.split",
    "album.merged",
    "track.merged",
    "album.uncredited",
    "track.uncredited",
    "import.started",
    "import.done",
    "import.stopped",
    "import.undo_started",
    "import.undone",
    "plays.withdrawal_started",
    "plays.withdrawn",
    "plays.pruned",
    "listener.erased",
    "db.restored",
    "request.sent",
    "activity.lost",
]
ADMIN = "admin"


class Administrator(NamedTuple):
    """An actor: the administrator with this account, using the administration pages."""

    account_id: int


Actor = Literal["cli", "api", "page", "abuse", "fixtures", "server"] | Administrator


class Event(NamedTuple):
    """A logged action on an account, a token or data.

    `account_id` is the account concerned, such as the new manager of an artist. `actor` is the part of the service that
    acted, such as `cli`. `actor_id` is the account that acted: of the actor `admin`, or another one than `account_id`.
    """

    at: int
    kind: str
    account_id: int | None
    token_id: int | None
    actor: str
    reason: str | None
    actor_id: int | None = None


COLUMNS = tuple(getattr(SecurityEvent, name) for name in Event._fields)


def add(
    kind: Kind,
    *,
    now: int,
    actor: Actor,
    account_id: int | None = None,
    token_id: int | None = None,
    reason: str | None = None,
    actor_id: int | None = None,
) -> None:
    """Log a security event. Call this function inside the transaction that performs the action.

    `actor_id`: the account that acted, if it is not the account concerned.
    """
    part, actor_id = (ADMIN, actor.account_id) if isinstance(actor, Administrator) else (actor, actor_id)
    SecurityEvent.insert(
        at=now, kind=kind, account_id=account_id, token_id=token_id, actor=part, reason=reason, actor_id=actor_id
    ).execute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions that events must meet. A None field sets no condition. `since` is inclusive, `until` exclusive."""

    account_id: int | None = None
    token_id: int | None = None
    since: int | None = None
    until: int | None = None


ALL = Filter()


def find(conditions: Filter = ALL, *, limit: int) -> list[Event]:
    """Return the newest `limit` events that match the conditions, oldest first."""
    rows = _select(conditions).order_by(SecurityEvent.at.desc(), SecurityEvent.id.desc()).limit(limit)
    return [Event._make(row) for row in rows.tuples()][::-1]


def first_at(kind: Kind, account_id: int) -> int | None:
    """Return when the account had its first event of this kind, or None if it had none."""
    conditions = SecurityEvent.account_id == account_id, SecurityEvent.kind == kind
    row = SecurityEvent.select(SecurityEvent.at).where(*conditions).order_by(SecurityEvent.at).tuples().first()
    return int(row[0]) if row else None


def tokens_created_before(at: int, account_id: int) -> set[int]:
    """Return the ids of the account's tokens that were created before `at`, even if they were regenerated since."""
    conditions = SecurityEvent.account_id == account_id, SecurityEvent.kind == "token.created", SecurityEvent.at < at
    rows = SecurityEvent.select(SecurityEvent.token_id).where(*conditions).tuples()
    return {int(row[0]) for row in rows.iterator()}


def last_id() -> int:
    """Return the id of the newest event, or 0 if there is none."""
    row = SecurityEvent.select(SecurityEvent.id).order_by(SecurityEvent.id.desc()).tuples().first()
    return int(row[0]) if row else 0


def written_after(event_id: int, conditions: Filter = ALL) -> list[tuple[int, Event]]:
    """Return the events that match the conditions and have ids above `event_id`, as (id, event), ordered by id."""
    rows = _select(conditions, SecurityEvent.id).where(SecurityEvent.id > event_id).order_by(SecurityEvent.id)
    return [(row[0], Event._make(row[1:])) for row in rows.tuples()]


def _select(conditions: Filter, *more: Any) -> Any:
    query = SecurityEvent.select(*more, *COLUMNS)
    for name in ("account_id", "token_id"):
        if (value := getattr(conditions, name)) is not None:
            query = query.where(getattr(SecurityEvent, name) == value)
    if conditions.since is not None:
        query = query.where(SecurityEvent.at >= conditions.since)
    return query if conditions.until is None else query.where(SecurityEvent.at < conditions.until)
