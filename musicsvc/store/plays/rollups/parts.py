"""Plays of tracks, albums and artists in the first seconds of a day, for windows that end within a day.

Often played ones have counts of two hours each (`day_parts`); single plays are read for the time after these.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.rollups import day_parts, listeners
from musicsvc.store.plays.rollups.day_parts import PLAYS

if TYPE_CHECKING:
    from collections.abc import Collection

    from musicsvc.store.plays.periods import Window

    Found = dict[int, list[tuple[int, bytes]]]

# One row for each subject: thousands of rows would take longer than to read them in the database.
LISTENERS = "SELECT {subject}, {listeners} FROM {plays} AND {time} GROUP BY {subject}"
WHOLE_SLOTS = f"{day_parts.OF_DAY} AND p.slot >= ? AND p.slot < ?"
PART_OF_SLOT = "p.slot = ? AND p.played_at < ?"
COUNTED = (
    "SELECT subject, plays, listeners FROM play_part WHERE kind = ? AND subject {among} AND part >= ? AND part < ?"
)


def of_day(kind: int, ids: Collection[int], window: Window) -> Found:
    """Return the plays in the parts of days at the ends of `window`, by track, album or artist id.

    They are numbers of plays with packed sets of listeners. Ids without plays may be absent.
    """
    if not window.seconds:
        return {}
    slot, rest = divmod(window.ends, SLOT)
    first, open_part = window.end * SLOTS_PER_DAY, slot // day_parts.SLOTS
    found = _counted(kind, ids, window.end * day_parts.PER_DAY, open_part)
    others = [each for each in ids if each not in found]
    _add(found, kind, [*found], WHOLE_SLOTS, (window.end, open_part * day_parts.SLOTS, slot))
    _add(found, kind, others, WHOLE_SLOTS, (window.end, first, slot))
    if rest:
        _add(found, kind, ids, PART_OF_SLOT, (slot, window.ends))
    return found


def _counted(kind: int, ids: Collection[int], first: int, end: int) -> Found:
    """Return the counts of the parts `first` to `end` - 1 of a day by id, of those that have all of them."""
    found: Found = defaultdict(list)
    if first < end:
        among, value = subjects.among(ids)
        for each, plays, packed in fetch(COUNTED.format(among=among), kind, value, first, end):
            found[each].append((plays, packed))
    return defaultdict(list, {each: some for each, some in found.items() if len(some) == end - first})


def _add(found: Found, kind: int, ids: Collection[int], time: str, values: tuple[int, ...]) -> None:
    """Add single plays to `found`."""
    if not ids:
        return
    among, value = subjects.among(ids)
    for each, some in fetch(query(kind, among, time), value, *values):
        heard = dialect.gathered(some)
        found[each].append((len(heard), listeners.pack(heard)))


def query(kind: int, among: str, time: str) -> str:
    """Return the statement for the listeners of subjects. `time`: WHOLE_SLOTS or PART_OF_SLOT."""
    subject, plays = PLAYS[kind]
    gathered = dialect.gather("p.listener_id")
    return LISTENERS.format(subject=subject, listeners=gathered, plays=plays.format(among=among), time=time)
