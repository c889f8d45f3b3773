"""Monthly rollups: play counts for periods of 32 days, which make a year as fast to read as a month.

Monthly rollups are built from daily ones, some tracks, albums and artists at a time. A watermark stores the progress.
Late plays are added to daily and monthly rollups, so all monthly rollups below the watermark stay complete.

Months with many plays also have the numbers of plays and listeners of each of their days, which make a chart of a year
as fast to read as twelve rows. These numbers are stored some time after the month. A late play deletes the numbers of
its month. Until they are stored again, daily rollups are read instead.
"""

from collections import defaultdict
from collections.abc import Collection
from itertools import starmap
from struct import Struct
from typing import NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import daily, subjects
from musicsvc.store.plays.rollups import listeners, tables, weekly
from musicsvc.store.plays.rollups.tables import Counts, New

DAYS = 32
KINDS = 3
WATERMARK = "SELECT block, kind, subject, kept_from FROM play_mark"
SPAN = f"SELECT {daily.FIRST_SINCE.format(since='?')}, {daily.LAST}"
# The subject at this position on each day, and the smallest of these; it limits the size of a batch.
BOUND = f"""
    SELECT min(bound) FROM (SELECT (
        SELECT {daily.SUBJECT} FROM play_day WHERE key BETWEEN given.value + ? AND given.value + ?
        ORDER BY key LIMIT 1 OFFSET ?
    ) AS bound FROM {{given}}) AS bounds
"""  # noqa: S608 - our own names
LEAST_PLAYS = 256  # of a month whose days are counted, as in the index play_block_without_days
WITHOUT_DAYS = f"SELECT kind, subject, block FROM play_block WHERE days IS NULL AND plays >= {LEAST_PLAYS} LIMIT ?"  # noqa: S608 - a constant
SUBJECTS_PER_MONTH = 500  # rolled up for each month whose days are counted
COUNTED_DAYS = f"SELECT {daily.DAY}, plays, listeners FROM {{rows}}"  # noqa: S608 - our own names
SET_DAYS = "UPDATE play_block SET days = ? WHERE kind = ? AND subject = ? AND block = ?"
STORED_DAYS = """
    SELECT subject, block, days FROM play_block WHERE kind = ? AND subject {among} AND block >= ? AND block < ?
"""
PACKED_DAY = Struct("<II")  # plays and listeners


class Watermark(NamedTuple):
    """The progress of the monthly counts: all counts with a lower (month, kind, id) are complete.

    Single plays before the day `kept_from` were deleted.
    """

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
    """Return the range of days with plays in months without complete counts, as days since 1970-01-01."""
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
    """Create about `limit` missing monthly counts. If none are missing, create weekly counts or the days of months.

    Return False if no counts are missing.
    """
    tables.lock()
    done = watermark()
    oldest, newest = _span(done.day)
    if not limit or oldest is None:
        return False
    if oldest // DAYS == newest // DAYS:
        return weekly.roll_up() or _count_days(1 + limit // SUBJECTS_PER_MONTH)
    month = oldest // DAYS
    kind, subject = (done.kind, done.subject) if month == done.month else (1, 0)
    end = _roll_up(month, kind, subject, limit)
    step = (month, kind, end) if end else (month, kind + 1, 0) if kind < KINDS else (month + 1, 1, 0)
    run("UPDATE play_mark SET block = ?, kind = ?, subject = ?", *step)
    return True


def _span(first: int) -> tuple[int | None, int]:
    """Return the first and the last day with plays on or after `first`. The first is None without such plays."""
    ((oldest, newest),) = fetch(SPAN, first)
    return oldest, newest


def _roll_up(month: int, kind: int, subject: int, limit: int) -> int | None:
    """Create about `limit` monthly rows for ids from `subject` on. Return the next id, or None if all ids are done."""
    end = batch_end(month, kind, subject, limit)
    counts = count(month, kind, subject, end)
    tables.replace(tables.MONTHLY, [(kind, each, month, *some) for each, some in counts.items()])
    return end


def batch_end(month: int, kind: int, subject: int, limit: int) -> int | None:
    """Return the end (exclusive) of a batch of about `limit` ids from `subject` on, or None for the last batch."""
    given, days = dialect.table_of([daily.key(day, kind, 0) for day in days_of(month)])
    ((end,),) = fetch(BOUND.format(given=given), subject, daily.LAST_ID, limit, days)
    return None if end is None else int(end)


def count(month: int, kind: int, subject: int, end: int | None) -> dict[int, Counts]:
    """Add up the daily counts of a month by id, for ids from `subject` to `end` - 1.

    `subject` is the first id of a track, album or artist (`kind`). If `end` is None, there is no upper limit.
    """
    rows, values = daily.rows_between(days_of(month), kind, subject, last(end))
    return tables.add_up(fetch(daily.COUNTS.format(rows=rows), *values))


def last(end: int | None) -> int:
    return daily.LAST_ID if end is None else end - 1


def _count_days(limit: int) -> bool:
    """Store the daily numbers of at most `limit` monthly rows that lack them. Return False if no row lacks them."""
    keys = fetch(WITHOUT_DAYS, limit)
    run_many(SET_DAYS, [(b"".join(starmap(PACKED_DAY.pack, count_days(*key))), *key) for key in keys])
    return bool(keys)


def count_days(kind: int, subject: int, month: int) -> list[tuple[int, int]]:
    """Compute (plays, listeners) of each day of a month from the daily counts of a track, album or artist."""
    counts = [(0, 0)] * DAYS
    for day, plays, packed in daily.fetch_rows(COUNTED_DAYS, days_of(month), kind, [subject]):
        counts[day % DAYS] = plays, listeners.count(packed)
    return counts


def stored_days(kind: int, ids: Collection[int], months: range) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return lists of (plays, listeners), one pair for each day, by (id, month), for months that have monthly counts.

    A list is empty if the daily numbers of its month are not stored yet.
    """
    among, value = subjects.among(ids)
    rows = fetch(STORED_DAYS.format(among=among), kind, value, months.start, months.stop)
    return {(subject, month): list(PACKED_DAY.iter_unpack(packed or b"")) for subject, month, packed in rows}
