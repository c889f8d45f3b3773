"""Plays in: a batch at a time, repeats harmless, each refusal with its reason (docs/plays.md)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.store.catalog import tracks
from musicsvc.store.engine import dialect
from musicsvc.store.plays.rollups import daily, listeners, monthly, subjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from musicsvc.store.accounts.tokens import Identity

SLOT = 30 * SECOND
OLDEST = 400 * DAY
AHEAD = 5 * MINUTE
INSERT = """
    INSERT INTO play (slot, track_id, listener_id, client_key, played_at, duration_ms, reporter) {rows}
    ON CONFLICT DO NOTHING RETURNING track_id, slot, listener_id
"""
KEY = itemgetter(0, 1, 2, 3, 4)  # of a row, its time at last: of two that are one play the earlier is kept
TYPES = ("bigint", "bigint", "bigint", "bytea", "bigint", "bigint", "bigint")
FOLDED = 4  # subjects put into blocks for each new play, more than it is likely to bring
FOLDED_AT_ONCE = 1000  # at most, some 25 ms
WITHOUT_ID = b""
UNKNOWN_TRACK = "There is no such track."
FUTURE = "The time is more than 5 minutes in the future."
TOO_OLD = "The time is more than 400 days ago; import older plays with: musicsvc import plays"
PRUNED = "Plays of that day are not kept any more, so that a repeat could not be told."
FOR_OTHERS = "The account may not report for other listeners."


class Heard(NamedTuple):
    """A play as it was reported: `listener` an opaque name, None for the reporter; `played_at` an instant."""

    track_id: int
    played_at: int
    listener: str | None = None
    duration_ms: int | None = None
    client_id: str | None = None


class Row(NamedTuple):
    """A play as it is stored; `client_key` is empty where the reporter gave no id."""

    slot: int
    track: int
    listener: int
    client_key: bytes
    played_at: int
    duration_ms: int | None
    reporter: int


@dataclass(slots=True)
class Outcome:
    """What became of a batch; `refused` holds the index in the batch and the reason."""

    accepted: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)


def report(heard: Sequence[Heard], *, now: int, actor: Identity) -> Outcome:
    """Take plays that an account reports, its own or, with the permission, others'."""
    daily.lock()
    outcome = Outcome()
    unknown = tracks.missing({play.track_id for play in heard})
    kept_from = monthly.mark().kept_from * DAY
    sound: list[Heard] = []
    for index, play in enumerate(heard):
        if reason := _refusal(play, play.track_id in unknown, now, actor) or untimely(play.played_at, kept_from, now):
            outcome.refused.append((index, reason))
        else:
            sound.append(play)
    keys = {play.listener: _key(play, actor) for play in sound}
    ids = listeners.ensure(keys.values())
    rows = [_row(play, ids[keys[play.listener]], actor) for play in sound]
    outcome.accepted = record(rows)
    outcome.repeated = len(rows) - outcome.accepted
    fold(outcome.accepted)
    return outcome


def fold(accepted: int) -> None:
    """Make some of the blocks that are due, in proportion to the plays that came in."""
    monthly.fold(min(FOLDED * accepted, FOLDED_AT_ONCE))


def _refusal(play: Heard, unknown: bool, now: int, actor: Identity) -> str | None:  # noqa: FBT001 - a fact, no option
    if unknown:
        return UNKNOWN_TRACK
    if play.listener is not None and not actor.reports_plays:
        return FOR_OTHERS
    return TOO_OLD if play.played_at < now - OLDEST else None


def untimely(played_at: int, kept_from: int, now: int) -> str | None:
    """Why a play of this time can never be taken, None where it can; plays are kept from `kept_from` on."""
    if played_at > now + AHEAD:
        return FUTURE
    return PRUNED if played_at < kept_from else None


def _key(play: Heard, actor: Identity) -> str:
    return listeners.account_key(actor.user_id) if play.listener is None else listeners.opaque_key(play.listener)


def _row(play: Heard, listener: int, actor: Identity) -> Row:
    key = WITHOUT_ID if play.client_id is None else client_key(f"account:{actor.user_id}", play.client_id)
    return Row(play.played_at // SLOT, play.track_id, listener, key, play.played_at, play.duration_ms, actor.user_id)


def client_key(source: str, client_id: str) -> bytes:
    """The 16 bytes that stand for a client's id within its source; a repeat has the same ones."""
    return hashlib.blake2b(f"{source}\x00{client_id}".encode(), digest_size=16).digest()


def record(rows: Iterable[Row]) -> int:
    """Store the plays that are new and count them; how many were new. Their tracks and listeners exist."""
    daily.lock()
    taken = dialect.insert_returning(INSERT, TYPES, sorted(rows, key=KEY))
    if taken:
        subjects.add(taken)
    return len(taken)
