"""Stretches of eight days, for what is played much and of late: where a window cuts a block, fewer sets to unite.

A row that is there is whole: it is made when its days are over, and plays that come in late are added to it. Where none
is, the days say the same. Rows of what is long ago, or played little, would not pay.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from musicsvc.store.engine.dialect import concat_blob
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays.rollups import daily, listeners

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from musicsvc.store.plays.rollups.daily import Key

DAYS = 8  # a block is some of them
KEPT = 13  # the window of 30 days and the one before, and as much again
LEAST = 16  # plays in each of a stretch's days on the average
STRETCHES = daily.Table("play_stretch", ("kind", "subject", "stretch"), ("int", "bigint", "int", "bigint", "bytea"))
MARK = "SELECT stretch, (SELECT max(day) FROM play_day) FROM play_mark"
PLAYED = f"""
    SELECT kind, subject FROM play_day WHERE day IN ({{days}}) AND plays >= {LEAST}
    GROUP BY kind, subject HAVING SUM(plays) >= {LEAST * DAYS}
"""  # noqa: S608 - constants
FROM_DAYS = """
    SELECT subject, plays, listeners FROM play_day WHERE day IN ({days}) AND kind = ? AND subject IN ({subjects})
"""
LATE = """
    UPDATE play_stretch SET plays = plays + ?, listeners = {joined} WHERE kind = ? AND subject = ? AND stretch = ?
"""


def within(days: Collection[int]) -> list[int]:
    """The stretches that lie whole in these days."""
    if not days:
        return []
    candidates = range(-(-min(days) // DAYS), (max(days) + 1) // DAYS)
    return [each for each in candidates if all(day in days for day in days_of(each))]


def days_of(stretch: int) -> range:
    """The days of a stretch."""
    return range(stretch * DAYS, (stretch + 1) * DAYS)


def append(heard: Mapping[Key, bytes]) -> None:
    """Add what came in late, as (day, kind, subject), to the stretches that are made."""
    ((mark, _),) = fetch(MARK)
    late: dict[Key, bytes] = defaultdict(bytes)
    for (day, kind, subject), packed in heard.items():
        if mark - KEPT <= day // DAYS < mark:
            late[kind, subject, day // DAYS] += packed
    rows = [(len(packed) // listeners.WIDTH, packed, *key) for key, packed in sorted(late.items())]
    run_many(LATE.format(joined=concat_blob("listeners", "?")), rows)


def fold() -> bool:
    """Make the stretches of the oldest eight days that are over and have none yet; whether there were any."""
    ((mark, newest),) = fetch(MARK)
    last = -1 if newest is None else newest // DAYS
    if mark >= last:
        return False
    made = max(mark, last - KEPT)
    days = ", ".join(map(str, days_of(made)))
    subjects: dict[int, list[int]] = defaultdict(list)
    for kind, subject in fetch(PLAYED.format(days=days)):
        subjects[kind].append(subject)
    for kind, some in subjects.items():
        _make(made, kind, fetch(FROM_DAYS.format(days=days, subjects=", ".join(map(str, some))), kind))
    run("DELETE FROM play_stretch WHERE stretch < ?", last - KEPT)
    run("UPDATE play_mark SET stretch = ?", made + 1)
    return True


def _make(stretch: int, kind: int, rows: Iterable[tuple[int, int, bytes]]) -> None:
    """Write the rows of a stretch, made of (subject, plays, listeners) of its days."""
    plays: dict[int, int] = defaultdict(int)
    sets: dict[int, list[bytes]] = defaultdict(list)
    for subject, count, packed in rows:
        plays[subject] += count
        sets[subject].append(packed)
    made = [(kind, each, stretch, plays[each], listeners.merge(some)) for each, some in sets.items()]
    daily.put(STRETCHES, made)


def forget(kind: int, subject: int) -> None:
    """Delete the stretches of a subject whose days are made anew; those to come are made again."""
    run("DELETE FROM play_stretch WHERE kind = ? AND subject = ?", kind, subject)
