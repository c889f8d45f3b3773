"""Times of single plays that are given by their positions, such as the 40th of the 200 plays of an artist's hour."""

from collections.abc import Mapping
from math import isqrt
from typing import Any, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups.histograms import SLOTS_PER_HOUR
from musicsvc.store.plays.subjects import PLAYS

OF_DAY = f"FROM {{plays}} AND p.slot / {SLOTS_PER_DAY} = ?"  # the expression of the index play_of_day
SLOTS = f"SELECT {{key}}, {{slots}} {OF_DAY} AND p.slot >= ? AND p.slot < ?"  # reads the index alone
TIME = f"""
    SELECT {{key}}, found.played_at FROM (
        SELECT p.played_at {OF_DAY} AND p.slot = ? ORDER BY p.played_at LIMIT 1 OFFSET ?
    ) AS found
"""  # noqa: S608 - constants


class Position(NamedTuple):
    """The position of a play: its hour (counted from 1970), and its place among the plays of that hour, from 0.

    `plays` is the number of plays that the track, album or artist (id `subject`) has in that hour.
    """

    subject: int
    hour: int
    place: int
    plays: int


class Slots(NamedTuple):
    """The 30-second slots `first` to `end` - 1, and the place of a play among their plays.

    The place is counted from 0, or backwards from -1, the last play.
    """

    subject: int
    first: int
    end: int
    place: int


def times(kind: int, positions: Mapping[int, Position]) -> dict[int, int]:
    """Return the time of each play by its key in `positions`. Deleted plays are absent.

    First, an index is read to find the slot of each play, then the times in this slot.
    """
    slots = _find_slots(kind, {key: likely_slots(position) for key, position in positions.items()})
    slots |= _find_slots(kind, {key: _hour(position) for key, position in positions.items() if key not in slots})
    last = {key: (each.subject, each.first, each.place) for key, each in slots.items()}
    return {key: int(at) for key, at in _fetch_each(TIME, kind, last)}


def _hour(position: Position) -> Slots:
    first = position.hour * SLOTS_PER_HOUR
    return Slots(position.subject, first, first + SLOTS_PER_HOUR, position.place)


def likely_slots(position: Position) -> Slots:
    """Return slots from the beginning or to the end of the hour, whichever is nearer, that likely contain the play.

    If the plays of the hour are unevenly spread, the play may be in another slot.
    """
    hour = _hour(position)
    to_end = position.plays - position.place
    nearest = min(position.place + 1, to_end)
    slots = SLOTS_PER_HOUR * (nearest + 2 * isqrt(nearest) + 3) // position.plays
    if slots >= SLOTS_PER_HOUR:
        return hour
    if nearest < to_end:
        return hour._replace(end=hour.first + slots)
    return hour._replace(first=hour.end - slots, place=-to_end)


def _find_slots(kind: int, among: Mapping[int, Slots]) -> dict[int, Slots]:
    """Return for each play the one slot that contains it. A play that is not in its slots of `among` is absent."""
    statement = SLOTS.replace("{slots}", dialect.gather("p.slot"))
    found: dict[int, Slots] = {}
    for key, gathered in _fetch_each(statement, kind, {key: each[:3] for key, each in among.items()}):
        subject, _, _, place = among[key]
        slots = sorted(dialect.gathered(gathered) or ())
        if -len(slots) <= place < len(slots):
            slot = slots[place]
            found[key] = Slots(subject, slot, slot + 1, place % len(slots) - slots.index(slot))
    return found


def _fetch_each(statement: str, kind: int, asked: Mapping[int, tuple[int, int, int]]) -> list[Any]:
    """Return one row for each key of `asked`, whose values are (subject, first slot, the statement's last value)."""
    parts = [statement.format(key=key, plays=PLAYS[kind][1].format(among="= ?")) for key in asked]
    values = [value for subject, slot, last in asked.values() for value in (subject, slot // SLOTS_PER_DAY, slot, last)]
    return fetch(" UNION ALL ".join(parts), *values) if parts else []
