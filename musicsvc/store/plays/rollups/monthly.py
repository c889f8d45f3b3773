"""Blocks of days that are over: a row in the place of many, so that a year and all time are read as fast as a month.

The rows of days come first and stay; blocks are made of them a few subjects at a time, up to a mark. Plays that come in
late are added on both sides of it, so that what is below the mark is always whole.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.rollups import daily, listeners, weekly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from musicsvc.store.plays.rollups.daily import Key

DAYS = 32
KINDS = 3
MARK = "SELECT block, kind, subject, kept_from FROM play_mark"
ROWS = """
    SELECT subject, plays, listeners FROM play_day
    WHERE day {days} AND kind = ? AND subject BETWEEN ? AND ?
"""
# The least of the subjects that stand at some place in each day: below it, a slice of bounded size.
BOUND = """
    SELECT min(bound) FROM (SELECT (
        SELECT subject FROM play_day WHERE day = column1 AND kind = ? AND subject >= ?
        ORDER BY subject LIMIT 1 OFFSET ?
    ) AS bound FROM (VALUES {days}) AS each_day) AS bounds
"""


class Mark(NamedTuple):
    """Blocks are made for each smaller (block, kind, subject); raw plays are kept from this day on."""

    block: int
    kind: int
    subject: int
    kept_from: int

    def passed(self, block: int, kind: int, subject: int) -> bool:
        """Whether the block of this subject is made."""
        return (block, kind, subject) < self[:3]

    @property
    def day(self) -> int:
        """The first day that is not in a block of every subject."""
        return self.block * DAYS


def mark() -> Mark:
    """How far blocks are made."""
    return Mark(*fetch(MARK)[0])


def open_days(made: Mark) -> range:
    """The days with plays that are not in a block of every subject."""
    oldest, newest = _span(made.day)
    return range(0) if oldest is None else range(oldest, newest + 1)


def append(heard: Mapping[Key, bytes]) -> None:
    """Add what came in late, as (day, kind, subject), to the blocks that are made already."""
    made = mark()
    late: dict[Key, bytes] = defaultdict(bytes)
    for (day, kind, subject), packed in heard.items():
        if day < made.day + DAYS and made.passed(day // DAYS, kind, subject):
            late[kind, subject, day // DAYS] += packed
    if late:
        daily.append(daily.BLOCKS, late)


def fold(most: int) -> bool:
    """Make blocks of days that are over, of some `most` subjects; whether there were any to be made."""
    daily.lock()
    made = mark()
    oldest, newest = _span(made.day)
    if not most or oldest is None:
        return False
    if oldest // DAYS == newest // DAYS:
        return weekly.fold()
    block = oldest // DAYS
    kind, subject = (made.kind, made.subject) if block == made.block else (1, 0)
    end = _slice(block, kind, subject, most)
    step = (block, kind, end) if end else (block, kind + 1, 0) if kind < KINDS else (block + 1, 1, 0)
    run("UPDATE play_mark SET block = ?, kind = ?, subject = ?", *step)
    return True


def _span(first: int) -> tuple[int | None, int]:
    """The oldest day from the first on, and the newest."""
    query = "SELECT min(day), (SELECT max(day) FROM play_day) FROM play_day WHERE day >= ?"
    oldest, newest = fetch(query, first)[0]
    return oldest, newest


def _slice(block: int, kind: int, subject: int, most: int) -> int | None:
    """Make the block of the next subjects; the first one that is left, None where none is."""
    end = bound(block, kind, subject, most)
    made = gather(block, kind, subject, end)
    daily.put(daily.BLOCKS, [(kind, each, block, plays, packed) for each, (plays, packed) in made.items()])
    return end


def bound(block: int, kind: int, subject: int, most: int) -> int | None:
    """Below which subject a slice from this one on ends, None where it takes all that are left."""
    days = ", ".join(f"({day})" for day in range(block * DAYS, (block + 1) * DAYS))
    query = BOUND.format(days=days)
    end: int | None = fetch(query, kind, subject, most)[0][0]
    return end


def gather(block: int, kind: int, subject: int, end: int | None) -> dict[int, tuple[int, bytes]]:
    """The plays and packed listeners in the days of the block, of each subject from this one on, below the end."""
    condition, values = dialect.in_list(range(block * DAYS, (block + 1) * DAYS))
    rows = ROWS.format(days=condition)
    plays: dict[int, int] = defaultdict(int)
    sets: dict[int, list[bytes]] = defaultdict(list)
    for each, count, packed in fetch(rows, values, kind, subject, last(end)):
        plays[each] += count
        sets[each].append(packed)
    return {each: (plays[each], listeners.merge(some)) for each, some in sets.items()}


def last(end: int | None) -> int:
    """The last subject below the end, that of all where there is no end."""
    return (1 << 63) - 1 if end is None else end - 1
