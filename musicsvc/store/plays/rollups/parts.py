"""Plays of tracks, albums and artists from midnight to a time of day, for windows that end within a day.

Often played tracks, albums and artists have two-hour counts, so single plays are read only for the remaining time.
"""

from collections import defaultdict
from collections.abc import Collection

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window
from musicsvc.store.plays.rollups import day_parts, listeners
from musicsvc.store.plays.rollups.day_parts import PLAYS

Found = dict[int, list[tuple[int, bytes]]]

# One row for each subject: thousands of rows would take longer than to read them in the database.
LISTENERS = "SELECT {subject}, {listeners} FROM {plays} AND {time} GROUP BY {subject}"
WHOLE_SLOTS = f"{day_parts.OF_DAY} AND p.slot >= ? AND p.slot < ?"
PART_OF_SLOT = "p.slot = ? AND p.played_at < ?"
COUNTED = (
    "SELECT subject, plays, listeners FROM play_part WHERE kind = ? AND subject {among} AND part >= ? AND part < ?"
)


def of_day(kind: int, ids: Collection[int], window: Window) -> Found:
    """Return the plays in the last, partial day of `window`, by id. Empty if the window has only whole days.

    Each value is a list of (number of plays, packed listener ids) to add up. Ids without plays may be absent.
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
    """Return counts of the two-hour parts `first` to `end` - 1 by id. Ids without counts of all parts are absent."""
    found: Found = defaultdict(list)
    if first < end:
        among, value = subjects.among(ids)
        for each, plays, packed in fetch(COUNTED.format(among=among), kind, value, first, end):
            found[each].append((plays, packed))
    return defaultdict(list, {each: some for each, some in found.items() if len(some) == end - first})


def _add(found: Found, kind: int, ids: Collection[int], time: str, values: tuple[int, ...]) -> None:
    """Read single plays, and add them to `found`. `time`: the SQL condition on the time of the plays."""
    if not ids:
        return
    among, value = subjects.among(ids)
    for each, some in fetch(query(kind, among, time), value, *values):
        heard = dialect.gathered(some)
        found[each].append((len(heard), listeners.pack(heard)))


def query(kind: int, among: str, time: str) -> str:
    """Return SQL that selects the listeners of single plays, by track, album or artist id.

    `among` is the SQL condition on these ids, `time` the one on the time of the plays.
    """
    subject, plays = PLAYS[kind]
    gathered = dialect.gather("p.listener_id")
    return LISTENERS.format(subject=subject, listeners=gathered, plays=plays.format(among=among), time=time)
