"""The plays themselves, which lie in the order of their time: read for one track by looking each half minute up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import days_reader, monthly
from musicsvc.store.plays.rollups.subjects import SLOTS_A_DAY, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_TRACK = """
    SELECT p.played_at, l.key FROM play p JOIN listener l ON l.id = p.listener_id
    WHERE p.slot {slots} AND p.track_id = ?
    ORDER BY p.slot DESC, p.played_at DESC, p.listener_id, p.client_key
"""
MADE = "SELECT block FROM play_block WHERE kind = ? AND subject = ? AND block < ? ORDER BY block DESC"


class Logged(NamedTuple):
    """A play: when, and by whom (the listener's key)."""

    played_at: int
    listener: str


def newest(track: int, most: int) -> list[Logged]:
    """The newest plays of a track, newest first."""
    found: list[Logged] = []
    for day in _days(track):
        found += between(track, day * SLOTS_A_DAY, (day + 1) * SLOTS_A_DAY)
        if len(found) >= most:
            break
    return found[:most]


def between(track: int, first: int, end: int) -> list[Logged]:
    """The plays of a track in these half minutes, newest first."""
    slots, values = dialect.in_list(range(first, end))
    query = OF_TRACK.format(slots=slots)
    return [Logged(*row) for row in fetch(query, values, track)]


def _days(track: int) -> Iterator[int]:
    """The days on which the track was played, newest first."""
    mark = monthly.mark()
    yield from _played(track, mark.day, days_reader.ALL_TIME)
    made = MADE
    for (block,) in fetch(made, TRACK, track, mark.block):
        yield from _played(track, block * monthly.DAYS, (block + 1) * monthly.DAYS)


def _played(track: int, first: int, end: int) -> list[int]:
    return [day for day, _, _ in reversed(days_reader.days(TRACK, track, first, end))]
