"""How often a track, album or artist was played, and by whom: in windows and of all time, from one pass over its rows.

counts.py answers each of these alone; together they share most of their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyroaring import BitMap

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import listeners, weekly
from musicsvc.store.plays.rollups.monthly import DAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.store.plays.periods import Window

MARK = f"""
    SELECT block, (SELECT min(day) FROM play_day WHERE day >= block * {DAYS}), (SELECT max(day) FROM play_day)
    FROM play_mark
"""  # noqa: S608 - a constant
FROM_BLOCKS = "SELECT block, plays, listeners FROM play_block WHERE kind = ? AND subject = ? AND block < ?"
FROM_STRETCHES = """
    SELECT stretch, plays, listeners FROM play_stretch WHERE kind = ? AND subject = ? AND stretch IN ({numbers})
"""
FROM_DAYS = "SELECT day, plays, listeners FROM play_day WHERE kind = ? AND subject = ? AND day IN ({numbers})"


class Subject(NamedTuple):
    """What is asked about: a kind of rollups.py and an id."""

    kind: int
    id: int


class Audience(NamedTuple):
    """How many plays, and by whom."""

    plays: int
    listeners: BitMap


class _Row(NamedTuple):
    """The days `first` … `end - 1`: their plays, and their listeners as they are stored."""

    first: int
    end: int
    plays: int
    listeners: bytes


def over(subject: Subject, *windows: Window) -> list[Audience]:
    """The audience of each of the windows, and last that of all time; no day is in two of the windows."""
    ((mark, oldest, newest),) = fetch(MARK)
    blocks = _blocks(subject, mark)
    open_days = [] if oldest is None else range(oldest, newest + 1)
    days = _days(subject, {*open_days, *(day for window in windows for day in _edges(window, mark))}, windows)
    parts: list[list[_Row]] = [[] for _ in windows]
    rest: list[_Row] = []
    for row in (*blocks, *days):
        home = rest
        for window, part in zip(windows, parts, strict=True):
            if window.first <= row.first and row.end <= window.end:
                home = part
        home.append(row)
    heard = [_of(part) for part in parts]
    # All time is every block and every day since; what a window holds is united already.
    plays = sum(row.plays for row in blocks) + sum(row.plays for row in days if row.first >= mark * DAYS)
    return [*heard, Audience(plays, BitMap.union(_of(rest).listeners, *(each.listeners for each in heard)))]


def _blocks(subject: Subject, mark: int) -> list[_Row]:
    found = fetch(FROM_BLOCKS, *subject, mark)
    return [_Row(block * DAYS, (block + 1) * DAYS, plays, packed) for block, plays, packed in found]


def _edges(window: Window, mark: int) -> Sequence[int]:
    """The days of the window that are not in whole blocks of it."""
    low, high = -(-window.first // DAYS), min(window.end // DAYS, mark)
    if low >= high:
        return range(window.first, window.end)
    return [*range(window.first, low * DAYS), *range(high * DAYS, window.end)]


def _days(subject: Subject, days: set[int], windows: Sequence[Window]) -> list[_Row]:
    """The rows of these days: stretches that are no days of two windows, and the days that are in none."""
    cuts = {bound for window in windows for bound in (window.first, window.end)}
    whole = [each for each in weekly.within(days) if not cuts.intersection(weekly.days_of(each)[1:])]
    rows = [
        _Row(each * weekly.DAYS, (each + 1) * weekly.DAYS, plays, packed)
        for each, plays, packed in _fetch(FROM_STRETCHES, whole, subject)
    ]
    left = sorted(days.difference(*(range(row.first, row.end) for row in rows)))
    return rows + [_Row(day, day + 1, plays, packed) for day, plays, packed in _fetch(FROM_DAYS, left, subject)]


def _fetch(statement: str, numbers: Sequence[int], subject: Subject) -> list[tuple[int, int, bytes]]:
    # Written out: on each day of the year the statement is the same for everybody.
    return fetch(statement.format(numbers=", ".join(map(str, numbers))), *subject) if numbers else []


def _of(rows: Sequence[_Row]) -> Audience:
    return Audience(sum(row.plays for row in rows), listeners.union(row.listeners for row in rows))
