"""Read the single plays of a track. The table of plays is ordered by time, in slots of 30 seconds."""

from collections.abc import Iterator
from typing import NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import counts, reader
from musicsvc.store.plays.subjects import TRACK

PLAYS = """
    SELECT p.played_at, l.key FROM play p JOIN listener l ON l.id = p.listener_id
    WHERE p.slot {slots} AND p.track_id = ?
    ORDER BY p.slot DESC, p.played_at DESC, p.listener_id, p.client_key
"""
DAYS = f"SELECT {counts.OF_DAY} FROM {{rows}} ORDER BY key DESC"  # noqa: S608 - our own names


class LoggedPlay(NamedTuple):
    """A play: its time in microseconds since 1970, and its listener's key (an account or a name chosen by a client)."""

    played_at: int
    listener: str


def newest(track: int, limit: int) -> list[LoggedPlay]:
    found: list[LoggedPlay] = []
    for day in _days(track):
        found += between(track, day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY)
        if len(found) >= limit:
            break
    return found[:limit]


def between(track: int, first: int, end: int) -> list[LoggedPlay]:
    """Return a track's plays in slots `first` to `end` - 1 (numbers of 30 seconds since 1970), newest first."""
    slots, values = dialect.in_list(range(first, end))
    return [LoggedPlay(*row) for row in fetch(PLAYS.format(slots=slots), values, track)]


def _days(track: int) -> Iterator[int]:
    """Yield the days (since 1970-01-01) on which the track was played, newest first."""
    for days, tracks in reversed(reader.spans(TRACK, [track])):
        for (day,) in counts.fetch_rows(DAYS, counts.starts(days), TRACK, tracks):
            yield day
