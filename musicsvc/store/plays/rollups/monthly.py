"""Monthly rollups: play counts for periods of 32 days, which make a year as fast to read as a month.

They are built from daily rollups, some tracks, albums and artists at a time. A watermark stores the progress.
Late plays are added to daily and monthly rollups, so all monthly rollups below the watermark stay complete.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.rollups import tables, weekly

if TYPE_CHECKING:
    from musicsvc.store.plays.rollups.tables import Counts, New

DAYS = 32
KINDS = 3
WATERMARK = "SELECT block, kind, subject, kept_from FROM play_mark"
SPAN = "SELECT min(day), (SELECT max(day) FROM play_day) FROM play_day WHERE day >= ?"
ROWS = """
    SELECT subject, plays, listeners, histogram FROM play_day
    WHERE day {days} AND kind = ? AND subject BETWEEN ? AND ?
"""
# The subject at this position on each day, and the smallest of these; it limits the size of a batch.
BOUND = """
    SELECT min(bound) FROM (SELECT (
        SELECT subject FROM play_day WHERE day = column1 AND kind = ? AND subject >= ?
        ORDER BY subject LIMIT 1 OFFSET ?
    ) AS bound FROM (VALUES {days}) AS each_day) AS bounds
"""


class Watermark(NamedTuple):
    """Monthly counts are complete below this (month, kind, id). Plays before the day `kept_from` were deleted."""

    month: int
    kind: int
    subject: int
    kept_from: int

    def rolled_up(self, month: int, kind: int, subject: int) -> bool:
        return (month, kind, subject) < self[:3]

    @property
    def day(self) -> int:
        """The first day of the earliest month without complete counts, as days since 1970-01-01."""
        return self.month * DAYS


def watermark() -> Watermark:
    return Watermark(*fetch(WATERMARK)[0])


def days_of(month: int) -> range:
    """Return the 32 days of a month, as days since 1970-01-01."""
    return range(month * DAYS, (month + 1) * DAYS)


def open_days(done: Watermark) -> range:
    """Return the range of days with plays outside complete months, as days since 1970-01-01."""
    oldest, newest = _span(done.day)
    return range(0) if oldest is None else range(oldest, newest + 1)


def add(new: New) -> None:
    """Add new plays, given by (day, kind) and by id of the track, album or artist, to existing monthly counts."""
    done = watermark()
    late: dict[tuple[int, int], dict[int, bytes]] = defaultdict(lambda: defaultdict(bytes))
    for (day, kind), some in new.items():
        month = day // DAYS
        if not done.rolled_up(month, kind, 0):
            continue
        for subject, plays in some.items():
            if done.rolled_up(month, kind, subject):
                late[kind, subject][month] += plays
    if late:
        tables.add(tables.MONTHLY, late)


def roll_up(limit: int) -> bool:
    """Create about `limit` due monthly counts or, if none are due, a week's counts. Return False if nothing is due."""
    tables.lock()
    done = watermark()
    oldest, newest = _span(done.day)
    if not limit or oldest is None:
        return False
    if oldest // DAYS == newest // DAYS:
        return weekly.roll_up()
    month = oldest // DAYS
    kind, subject = (done.kind, done.subject) if month == done.month else (1, 0)
    end = _roll_up(month, kind, subject, limit)
    step = (month, kind, end) if end else (month, kind + 1, 0) if kind < KINDS else (month + 1, 1, 0)
    run("UPDATE play_mark SET block = ?, kind = ?, subject = ?", *step)
    return True


def _span(first: int) -> tuple[int | None, int]:
    """Return the first and the last day with plays from the day `first` on; the first is None if there are none."""
    ((oldest, newest),) = fetch(SPAN, first)
    return oldest, newest


def _roll_up(month: int, kind: int, subject: int, limit: int) -> int | None:
    """Create about `limit` monthly rows, for ids from `subject` on. Return the first remaining id, or None."""
    end = batch_end(month, kind, subject, limit)
    counts = count(month, kind, subject, end)
    tables.replace(tables.MONTHLY, [(kind, each, month, *some) for each, some in counts.items()])
    return end


def batch_end(month: int, kind: int, subject: int, limit: int) -> int | None:
    """Return the `end` of a batch of about `limit` ids from `subject` to `end` - 1, or None if no ids follow it."""
    days = ", ".join(f"({day})" for day in days_of(month))
    ((end,),) = fetch(BOUND.format(days=days), kind, subject, limit)
    return None if end is None else int(end)


def count(month: int, kind: int, subject: int, end: int | None) -> dict[int, Counts]:
    """Return a month's sums of daily counts by id, for ids from `subject` to `end` - 1. None means no upper limit."""
    condition, days = dialect.in_list(days_of(month))
    return tables.add_up(fetch(ROWS.format(days=condition), days, kind, subject, last(end)))


def last(end: int | None) -> int:
    return (1 << 63) - 1 if end is None else end - 1
