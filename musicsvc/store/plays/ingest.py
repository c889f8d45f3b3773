"""Store reported plays and listens in batches: refuse some, with a reason, ignore repeats, and record the others."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from musicsvc.clock import DAY, MINUTE
from musicsvc.errors import Unauthenticated
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import is_sqlite
from musicsvc.store.models import Play
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, transfer
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.reported import own_plays
from musicsvc.store.plays.rollups import blocks, listeners

OLDEST = 400 * DAY
AHEAD = 5 * MINUTE
PLAYED_AT = itemgetter(4)  # of a row; the earliest of repeats is kept
WITHOUT_ID = b""
FUTURE = "The time is more than 5 minutes in the future."
TOO_OLD = "The time is more than 400 days ago; import older plays with: musicsvc import plays"
PRUNED = "Plays of that day have been deleted, so a repeat could not be recognized."
FOR_OTHERS = "The account may not report plays of other listeners."


class ReportedPlay(NamedTuple):
    """A play as a client reports it. `listener` is a name chosen by the client, or None for its own account.

    `names`: of a listen, the hash of the names of its track (`listens/matching.py`), whose negative (~) it has in place
    of `track_id` if it waits for this track.
    """

    track_id: int
    played_at: int
    listener: str | None = None
    duration_ms: int | None = None
    client_id: str | None = None
    platform: str | None = None
    names: int | None = None


@dataclass(slots=True)
class IngestOutcome:
    """The result of storing a batch of plays. `refused` has (index in the batch, reason) for each refused play.

    `waiting`: listens that the caller must store, by index in the batch.
    """

    accepted: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    waiting: dict[int, PlayRow] = field(default_factory=dict)


def report(
    plays: Sequence[ReportedPlay],
    *,
    now: int,
    actor: Identity,
    own_accepted: bool = True,
    own_daily: int = own_plays.DAILY,
) -> IngestOutcome:
    """Store the valid plays. Return counts and refused plays. Naming a listener requires the right to report plays.

    `own_accepted`, `own_daily`: the settings `plays.own` and `plays.own_daily`.
    """
    counting.share()
    if any(play.listener is None for play in plays) and users.missing([actor.user_id]):
        raise Unauthenticated("unknown")  # the account was deleted after its token was checked
    unknown = tracks.missing({play.track_id for play in plays if play.names is None})
    kept_from = blocks.progress().kept_from * DAY
    refused: dict[int, str] = {}
    for index, play in enumerate(plays):
        reason = tracks.UNKNOWN if play.track_id in unknown else _refusal(play, now, actor, own_accepted=own_accepted)
        if reason := reason or refuse_time(play.played_at, kept_from, now):
            refused[index] = reason
    valid = {index: play for index, play in enumerate(plays) if index not in refused}
    keys = {play.listener: _listener_key(play, actor) for play in valid.values()}
    ids = listeners.ensure(keys.values())
    rows = {index: _row(play, ids[keys[play.listener]], actor, now) for index, play in valid.items()}
    own = ids[keys[None]] if None in keys else None
    dropped = transfer.dropped({row.client_key for row in rows.values() if row.client_key})
    if own is None:
        rows = {index: row for index, row in rows.items() if row.client_key not in dropped}
    else:
        own_plays.lock(own)
        rows, surplus = own_plays.select(rows, own, actor.user_id, dropped, daily=own_daily)
        refused |= surplus
    waiting = {index: row for index, row in rows.items() if row.track < 0}
    found = [row if row.names_hash is None else row._replace(names_hash=None) for row in rows.values() if row.track > 0]
    accepted = record(found, () if own is None else (own,))
    counting.roll_up(accepted)
    repeated = len(plays) - len(refused) - accepted - len(waiting)
    return IngestOutcome(accepted, repeated, sorted(refused.items()), waiting)


def _refusal(play: ReportedPlay, now: int, actor: Identity, *, own_accepted: bool) -> str | None:
    if play.listener is None:
        return own_plays.refuse(play.played_at, now, accepted=own_accepted)
    if not actor.reports_plays:
        return FOR_OTHERS
    return TOO_OLD if play.played_at < now - OLDEST else None


def refuse_time(played_at: int, kept_from: int, now: int) -> str | None:
    """Return an error message for a play in the future or before `kept_from`, else None. Times are in microseconds."""
    if played_at > now + AHEAD:
        return FUTURE
    return PRUNED if played_at < kept_from else None


def _listener_key(play: ReportedPlay, actor: Identity) -> str:
    return listeners.account_key(actor.user_id) if play.listener is None else listeners.opaque_key(play.listener)


def _row(play: ReportedPlay, listener: int, actor: Identity, now: int) -> PlayRow:
    track, at, _, length, client_id, platform, names = play
    key = WITHOUT_ID if client_id is None else client_key(f"account:{actor.user_id}", client_id)
    return PlayRow(at // SLOT, track, listener, key, at, length, actor.user_id, None, names, now, platform)


def client_key(source: str, client_id: str) -> bytes:
    """Return a 16-byte hash of the id that `source` (such as `account:7`) gave to a play, to find repeated reports."""
    return hashlib.blake2b(f"{source}\x00{client_id}".encode(), digest_size=16).digest()


def record(rows: Iterable[PlayRow], own: Collection[int] = (), *, placed: bool = False) -> int:
    """Store the plays that are not stored yet, and add them to the play counts. Return the number of new plays.

    `own`: the listeners whose plays are own plays. `placed`: these have their places among those of their days already.
    Call after `counting.share` or `counting.lock`.
    """
    new = bulk.insert_new(Play, PlayRow._fields, sorted(rows, key=PLAYED_AT if is_sqlite() else _identity))
    counting.add(new, own)
    if not placed:
        own_plays.count(new, own)
    return len(new)


def _identity(row: PlayRow) -> tuple[Any, ...]:
    """Return a sort key by which transactions insert the same plays in the same order, so that none waits in a circle.

    The earliest of repeats is first.
    """
    return (row.client_key, row.played_at) if row.client_key else (WITHOUT_ID, *row[:3], row.played_at)
