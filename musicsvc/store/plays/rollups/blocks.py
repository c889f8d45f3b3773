"""Play counts of blocks of 32 days, which make a year as fast to read as a month, and of blocks of 8 days.

Both are made from the counts of days. Blocks of 32 days are made for everything that was played, some tracks, albums
and artists at a time, and a mark stores the progress: all below it are complete. Blocks of 8 days are made only for
what is played often, and old ones are deleted: reading the few days instead is cheap. Late plays are added to all.
"""

from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY, Counts

LENGTH8, LENGTH32 = counts.DAYS[BLOCK8], counts.DAYS[BLOCK32]
KEPT = 13  # blocks of 8 days: the window of 30 days, the 30 days before it, and a margin
LEAST_PLAYS = 16  # a day on average
ABOVE_DAYS = counts.start(BLOCK8, -counts.ORIGIN)  # more than the keys of all days
# The first key of the days that follow the complete blocks of 32 days.
OPEN = f"((block32 >> {counts.REST_BITS} & {counts.LAST_PERIOD}) << {counts.REST_BITS + counts.SHIFT[BLOCK32]})"
PROGRESS = f"""
    SELECT block8, block32, kept_from,
        (SELECT min(key) FROM play_count WHERE key < {ABOVE_DAYS}),
        (SELECT min(key) FROM play_count WHERE key >= {OPEN} AND key < {ABOVE_DAYS}),
        (SELECT max(key) FROM play_count WHERE key < {ABOVE_DAYS})
    FROM play_progress
"""  # noqa: S608 - constants
# The place of a row among those of its day, for the day on which it is the lowest; it limits the size of a batch.
BOUND = f"""
    SELECT min(bound) FROM (SELECT (
        SELECT key & {counts.REST} FROM play_count WHERE key >= given.value + ? AND key <= given.value + {counts.REST}
        ORDER BY key LIMIT 1 OFFSET ?
    ) AS bound FROM {{given}}) AS bounds
"""  # noqa: S608 - constants
POPULAR = f"""
    SELECT key & {counts.REST} FROM play_count WHERE {counts.IN_SPAN} AND plays >= {LEAST_PLAYS}
    GROUP BY 1 HAVING SUM(plays) >= {LEAST_PLAYS * LENGTH8}
"""  # noqa: S608 - constants
OLD = f"DELETE FROM play_count WHERE {counts.IN_SPAN}"  # noqa: S608 - a constant


class Progress(NamedTuple):
    """The progress of the counts of blocks, and the days with plays (since 1970-01-01; None without plays).

    Counts of blocks of 32 days with keys below `block32` are complete, and those of 8 days below `block8` are made.
    Single plays before the day `kept_from` were deleted. `oldest`: the first day with plays on `open_day` or later.
    """

    block8: int
    block32: int
    kept_from: int
    first: int | None
    oldest: int | None
    newest: int | None

    @property
    def open_day(self) -> int:
        """The first day of the earliest block of 32 days without complete counts."""
        return counts.first_day(self.block32)

    @property
    def open_day8(self) -> int:
        """The first day of the earliest block of 8 days without counts."""
        return counts.first_day(self.block8)

    @property
    def open_days(self) -> range:
        """The days with plays in blocks of 32 days without complete counts."""
        return range(0) if self.oldest is None or self.newest is None else range(self.oldest, self.newest + 1)

    @property
    def blocks(self) -> range:
        """The first days of the blocks of 32 days that are complete."""
        return range(0) if self.first is None else range(_begin(self.first, LENGTH32), self.open_day, LENGTH32)

    def within(self, days: range) -> range:
        """Return these days from that of the first play to that of the last one."""
        if self.first is None or self.newest is None:
            return range(0)
        return range(max(days.start, self.first), min(days.stop, self.newest + 1))


def _begin(day: int, length: int) -> int:
    """Return the first day of the block of 8 or 32 days (`length`) that contains a day."""
    return day // length * length


def progress() -> Progress:
    ((block8, block32, kept_from, *keys),) = fetch(PROGRESS)
    first, oldest, newest = (None if key is None else counts.first_day(key) for key in keys)
    return Progress(block8, block32, kept_from, first, oldest, newest)


def covering(keys: Iterable[int]) -> list[tuple[int, int]]:
    """Return pairs of a key, of a row of a day, and the key of a block that contains its plays, if it is counted."""
    done = progress()
    begun = done.open_day + (LENGTH32 if done.block32 & counts.REST else 0)
    end = counts.start(DAY, max(done.open_day8, begun))
    late = [key for key in keys if key < end]
    eights = {key: counts.cover(BLOCK8, key) for key in late}
    stored = {key for (key,) in counts.fetch_keys(counts.KEYS, {*eights.values()})}
    complete = ((key, counts.cover(BLOCK32, key)) for key in late)
    return [each for each in eights.items() if each[1] in stored] + [
        each for each in complete if each[1] < done.block32
    ]


def roll_up(limit: int) -> bool:
    """Do the same as `advance` in a transaction of its own."""
    sql.lock(counts.LOCK, shared=True)
    sql.lock(counts.COUNTING)
    return advance(limit)


def advance(limit: int) -> bool:
    """Make about `limit` missing counts of blocks of 32 days, or if none are missing those of a block of 8 days.

    Return False if no counts are missing. Call after `counting.lock`, or with the lock `counts.COUNTING`.
    """
    done = progress()
    if not limit or done.oldest is None or done.newest is None:
        return False
    if _begin(done.oldest, LENGTH32) == _begin(done.newest, LENGTH32):
        return _make_eights(done, done.newest)
    first = max(done.block32, counts.start(BLOCK32, done.oldest))
    end = batch_end(first, limit)
    made = between(first, end)
    counts.replace(made, made)
    run("UPDATE play_progress SET block32 = ?", end)
    return True


def batch_end(first: int, limit: int) -> int:
    """Return the end (exclusive) of a batch of about `limit` keys of a block, from the key `first` on."""
    given, days = sql.table_of(counts.starts(counts.days_of(first)))
    ((bound,),) = fetch(BOUND.format(given=given), first & counts.REST, limit, days)
    begin = first - (first & counts.REST)
    return begin + counts.REST + 1 if bound is None else begin + int(bound)


def between(first: int, end: int) -> dict[int, Counts]:
    """Add up the counts of days for the keys of a block from `first` to `end` - 1."""
    begin = first - (first & counts.REST)
    days = counts.starts(counts.days_of(first))
    source, values = counts.rows_between(days, first - begin, end - begin)
    rows = fetch(counts.ROWS.format(rows=source), *values)
    return counts.add_up((begin + (key & counts.REST), *of_day) for key, *of_day in rows)


def from_days(keys: Collection[int]) -> dict[int, Counts]:
    """Add up the counts of days for these keys of blocks of one level. Those without plays are absent."""
    level = min(keys, default=0) >> counts.LEVEL_SHIFT
    firsts = (counts.start(DAY, counts.first_day(key)) + (key & counts.REST) for key in keys)
    whole, step = counts.DAYS[level] << counts.REST_BITS, 1 << counts.REST_BITS
    days = [*chain.from_iterable(range(first, first + whole, step) for first in firsts)]
    return counts.add_up((counts.cover(level, key), *of_day) for key, *of_day in counts.fetch_keys(counts.ROWS, days))


def _make_eights(done: Progress, newest: int) -> bool:
    """Make the counts of the oldest finished block of 8 days that has none. Return False if there is no such block."""
    last = _begin(newest, LENGTH8)
    kept = last - KEPT * LENGTH8
    day = max(done.open_day8, kept)
    if day >= last:
        return False
    begin = counts.start(BLOCK8, day)
    popular = fetch(POPULAR, *counts.span(range(day, day + LENGTH8)))
    made = from_days([begin + rest for (rest,) in popular])
    counts.replace(made, made)
    run(OLD, ABOVE_DAYS, counts.start(BLOCK8, kept))
    run("UPDATE play_progress SET block8 = ?", counts.start(BLOCK8, day + LENGTH8))
    return True
