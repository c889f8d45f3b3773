"""Read the play and listener counts of tracks, albums and artists, for ranges of days and for all time.

Each range is read from as few rows as possible: blocks of 32 days, blocks of 8 days where there are any, and days.
Single plays are read for the last day of a window that ends within a day.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyroaring import BitMap

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window
from musicsvc.store.plays.rollups import blocks, counts, histograms, listeners
from musicsvc.store.plays.rollups.blocks import LENGTH8, LENGTH32
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY
from musicsvc.store.plays.rollups.histograms import Histogram
from musicsvc.store.plays.subjects import TRACK

SETS = f"SELECT {counts.SUBJECT}, {counts.PERIOD}, plays, listeners FROM {{rows}}"  # noqa: S608 - our own names
STORED = f"SELECT {counts.SUBJECT}, {counts.PERIOD} FROM {{rows}}"  # noqa: S608 - our own names
SUMS = f"SELECT {counts.SUBJECT}, CAST(SUM(plays) AS BIGINT) FROM {{rows}} GROUP BY 1"  # noqa: S608 - our own names
MANY_DAYS = 400  # a longer list of numbers in a statement costs more than to look for those with plays
# The first row of each period that has rows, from one key to another: one search for each.
PERIODS = f"""
    WITH RECURSIVE found (key) AS (
        SELECT min(key) FROM play_count WHERE {counts.IN_SPAN}
        UNION ALL
        SELECT (SELECT min(p.key) FROM play_count p WHERE p.key > found.key | {counts.REST} AND p.key < ?)
        FROM found WHERE key IS NOT NULL
    )
    SELECT key FROM found WHERE key IS NOT NULL
"""  # noqa: S608 - constants
# One row for each subject: thousands of rows would take longer than to read them in the database.
LISTENERS = "SELECT {subject}, {listeners} FROM {plays} AND {time} GROUP BY {subject}"
WHOLE_SLOTS = f"p.slot / {SLOTS_PER_DAY} = ? AND p.slot >= ? AND p.slot < ?"  # reads the index play_of_day
PART_OF_SLOT = "p.slot = ? AND p.played_at < ?"
ALL_TIME_PLAYS = {
    TRACK: "SELECT track_id, plays FROM track_plays WHERE track_id {among}",
} | {
    kind: f"""
        SELECT subject, sum(p.plays) FROM {tracks} JOIN track_plays p ON p.track_id = members.track_id
        WHERE subject {{among}} GROUP BY subject
    """  # noqa: S608 - our own names
    for kind, tracks in subjects.TRACKS.items()
}
# Bytes; packed sets of a subject are united as soon as they exceed it. Uniting all at once is twice as fast.
LARGEST, LARGEST_IN_STREAM = 1 << 30, 64 * 1024
POPULAR_PER_BATCH = 8  # subjects whose rows are in memory at once


class PlayStats(NamedTuple):
    """A number of plays, and the ids of the distinct listeners."""

    plays: int
    listeners: BitMap


NO_PLAYS = PlayStats(0, BitMap())


class _Sum:
    """Adds up the plays and listeners of one track, album or artist in one range of days."""

    __slots__ = ("_largest", "_listeners", "_packed", "_size", "plays")

    def __init__(self, largest: int) -> None:
        self.plays = 0
        self._largest = largest
        self._packed: list[bytes] = []
        self._size = 0
        self._listeners = NO_PLAYS.listeners

    def add(self, plays: int, packed: bytes) -> None:
        self.plays += plays
        self._packed.append(packed)
        self._size += len(packed)
        if self._size > self._largest:
            self._unite()

    def _unite(self) -> None:
        united = listeners.union(self._packed)
        self._listeners = self._listeners | united if self._listeners else united
        self._packed, self._size = [], 0

    def stats(self) -> PlayStats:
        if self._packed:
            self._unite()
        return PlayStats(self.plays, self._listeners)


class Reader:
    """Reads plays and listeners in ranges of days (`windows`) that do not overlap. Use it within one transaction."""

    def __init__(self, *windows: Window, all_time: bool = True) -> None:
        done = blocks.progress()
        self._windows = [window.countable(done.kept_from) for window in windows]
        self._all_time = all_time
        self._open = counts.start(DAY, done.open_day) >> counts.REST_BITS
        months, days = self._cover(done)
        eights = self._blocks_of_8(days, done)
        in_eights = {day for first in eights for day in range(first, first + LENGTH8)}
        self._eights = self._places(eights, BLOCK8)
        self._in_eights = self._places(in_eights, DAY)
        self._others = self._places(months, BLOCK32) | self._places(days - in_eights, DAY)
        self._place = self._eights | self._in_eights | self._others

    def _cover(self, done: blocks.Progress) -> tuple[set[int], set[int]]:
        """Return the first days of the complete blocks of 32 days that are needed, and the other days."""
        complete = complete_blocks(done)
        months, days = ({*complete}, {*done.open_days}) if self._all_time else (set[int](), set[int]())
        for window in self._windows if done.newest is not None else ():
            whole, others = _split(window, done)
            months.update(day for day in complete if day in whole)
            days.update(others)
        return months, days

    def _blocks_of_8(self, days: set[int], done: blocks.Progress) -> list[int]:
        """Return the first days of the blocks of 8 days, if any subject has them, whose days are all in one window."""
        cuts = {bound for window in self._windows for bound in (window.first, window.end)}
        return [
            day
            for day in range(done.open_day8 - blocks.KEPT * LENGTH8, done.open_day8, LENGTH8)
            if days.issuperset(range(day, day + LENGTH8)) and not cuts.intersection(range(day + 1, day + LENGTH8))
        ]

    def _places(self, days: Iterable[int], level: int) -> dict[int, int]:
        """Return the index of the window, or the number of windows, by the PERIOD that begins on each of the days."""
        length = counts.DAYS[level]
        return {counts.start(level, day) >> counts.REST_BITS: self._window_of(day, day + length) for day in days}

    def _window_of(self, first: int, end: int) -> int:
        for place, window in enumerate(self._windows):
            if window.first <= first and end <= window.end:
                return place
        return len(self._windows)

    def read(self, kind: int, ids: Collection[int]) -> dict[int, list[PlayStats]]:
        """Return a list of `PlayStats` for each id: one per window, then one of all time if `all_time` was set."""
        return self._add_up(kind, ids, self._rows(kind, ids, "plays, listeners"))

    def stream(self, kind: int, ids: Sequence[int]) -> dict[int, list[PlayStats]]:
        """Do the same as `read` without holding all rows in memory. Pass some hundreds of `ids` in ascending order."""
        stored = {subject for subject, _ in counts.fetch_rows(STORED, _starts(self._eights), kind, ids)}
        popular = [each for each in ids if each in stored]
        found: dict[int, list[PlayStats]] = {}
        for some in sql.batches(popular, POPULAR_PER_BATCH):
            found |= self.read(kind, some)
        others = [each for each in ids if each not in stored]
        if others:
            found |= self._add_up(kind, others, _stream(self.periods, kind, others), LARGEST_IN_STREAM)
        return {each: found[each] for each in ids}

    def plays(self, kind: int, ids: Collection[int]) -> dict[int, int]:
        """Return the number of plays in all the windows of this reader together, by id.

        `ids` are those of tracks, albums or artists. Ids without plays are absent.
        """
        found: dict[int, int] = defaultdict(int)
        for window in self._windows:
            for subject, some in of_last_day(kind, ids, window).items():
                found[subject] += sum(plays for plays, _ in some)
        if ids and self.periods:
            wanted = set(ids)
            rows, values = counts.dense_rows(self.periods, kind, sorted(wanted))
            for subject, plays in fetch(SUMS.format(rows=rows), *values):
                if subject in wanted:
                    found[subject] += plays
        return found

    @property
    def periods(self) -> list[int]:
        """The lowest keys of the days and blocks of 32 days that together have all plays, once each."""
        return _starts(self._others | self._in_eights)

    def own_plays(self, kind: int, subject: int) -> int:
        """Return the number of plays of a track, album or artist in all windows that listeners reported themselves."""
        return sum(own for _, _, own in self._rows(kind, [subject], "own"))

    def histogram(self, kind: int, ids: Collection[int]) -> Histogram:
        """Return the histogram of all plays of these tracks, albums or artists in all windows."""
        return histograms.unpack(packed for _, _, packed in self._rows(kind, ids, "histogram"))

    def _rows(self, kind: int, ids: Collection[int], columns: str) -> list[Any]:
        """Return rows that together have all plays of `ids`, as few as possible: id, PERIOD, and these columns."""
        query = f"SELECT {counts.SUBJECT}, {counts.PERIOD}, {columns} FROM {{rows}}"  # noqa: S608 - our own names
        eights = counts.fetch_rows(query, _starts(self._eights), kind, ids)
        stored: dict[int, set[int]] = defaultdict(set)
        for subject, period, *_ in eights:
            stored[subject].add(period)
        without = defaultdict(list)  # ids by the blocks of 8 days that they have
        for each in ids:
            without[frozenset(stored.get(each, ()))].append(each)
        rows = eights + counts.fetch_rows(query, _starts(self._others), kind, ids)
        for have, some in without.items():
            in_blocks = {day for period in have for day in counts.days_of(period << counts.REST_BITS)}
            days = [first for first in _starts(self._in_eights) if counts.first_day(first) not in in_blocks]
            rows += counts.fetch_rows(query, days, kind, some)
        return rows

    def _add_up(
        self, kind: int, ids: Collection[int], rows: Iterable[Any], largest: int = LARGEST
    ) -> dict[int, list[PlayStats]]:
        sums: dict[int, list[_Sum]] = defaultdict(lambda: [_Sum(largest) for _ in (*self._windows, None)])
        ever: dict[int, int] = defaultdict(int)
        for subject, period, plays, packed in rows:
            sums[subject][self._place[period]].add(plays, packed)
            if self._is_of_ever(period):
                ever[subject] += plays
        for place, window in enumerate(self._windows):
            for subject, some in of_last_day(kind, ids, window).items():
                for plays, packed in some:
                    sums[subject][place].add(plays, packed)
        return {each: self._stats(sums.get(each, ()), ever[each]) for each in ids}

    def _is_of_ever(self, period: int) -> bool:
        """Return whether the plays of all time are counted in this PERIOD, not in the block of 32 days with it."""
        level = period >> counts.PERIOD_BITS
        return level == BLOCK32 or (period & counts.LAST_PERIOD) << counts.SHIFT[level] >= self._open

    def _stats(self, sums: Sequence[_Sum], plays: int) -> list[PlayStats]:
        if not sums:
            return [NO_PLAYS] * (len(self._windows) + self._all_time)
        stats = [each.stats() if each.plays else NO_PLAYS for each in sums]
        if not self._all_time:
            return stats[:-1]
        sets = [each.listeners for each in stats if each.plays] or [NO_PLAYS.listeners]  # of wrong rows without plays
        return [*stats[:-1], PlayStats(plays, sets[0] if len(sets) == 1 else BitMap.union(*sets))]


def _split(window: Window, done: blocks.Progress) -> tuple[range, list[int]]:
    """Return the first days of the complete blocks of 32 days within a window, and its other days.

    Days in blocks before or after all plays are left out.
    """
    first, end = window.first, window.end
    if done.first is not None and done.newest is not None:
        first = max(first, done.first // LENGTH32 * LENGTH32)
        end = min(end, (done.newest // LENGTH32 + 1) * LENGTH32)
    low, high = -(-first // LENGTH32) * LENGTH32, min(end // LENGTH32 * LENGTH32, done.open_day)
    if low >= high:
        return range(0), [*range(first, end)]
    return range(low, high, LENGTH32), [*range(first, low), *range(high, end)]


def _stream(periods: Collection[int], kind: int, ids: Sequence[int]) -> Iterator[Any]:
    if periods:
        rows, values = counts.dense_rows(periods, kind, ids)
        yield from sql.stream_rows(SETS.format(rows=rows), *values)


def _starts(periods: Iterable[int]) -> list[int]:
    """Return the lowest keys of periods, given by PERIOD."""
    return [period << counts.REST_BITS for period in periods]


def of_last_day(kind: int, ids: Collection[int], window: Window) -> dict[int, list[tuple[int, bytes]]]:
    """Return the plays in the last, partial day of `window`, by id. Empty if the window has only whole days.

    Each value is a list of (number of plays, packed listener ids) to add up. Ids without plays are absent.
    """
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    if not window.seconds or not ids:
        return found
    among, value = subjects.among(ids)
    selected = subjects.plays(kind, ids)
    for time, values in last_day(window):
        for each, some in fetch(query(selected, among, time), value, *values):
            heard = sql.gathered(some)
            found[each].append((len(heard), listeners.pack(heard)))
    return found


def last_day(window: Window) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield SQL conditions for the plays of the last, partial day of the window, and their values."""
    slot, rest = divmod(window.ends, SLOT)
    if window.seconds:
        yield WHOLE_SLOTS, (window.end, window.end * SLOTS_PER_DAY, slot)
    if window.seconds and rest:
        yield PART_OF_SLOT, (slot, window.ends)


def query(selected: tuple[str, str], among: str, time: str) -> str:
    """Return SQL that selects the listeners of single plays, by track, album, artist or account id.

    `selected`: the subject and the plays (`subjects.plays`). `among` is the SQL condition on these ids, `time` the one
    on the time of the plays.
    """
    subject, plays = selected
    gathered = sql.gather("p.listener_id")
    return LISTENERS.format(subject=subject, listeners=gathered, plays=plays.format(among=among), time=time)


def complete_blocks(done: blocks.Progress) -> Collection[int]:
    """Return the first days of the complete blocks of 32 days; if they are very many only of those with plays."""
    if len(done.blocks) <= MANY_DAYS:
        return done.blocks
    end = counts.start(BLOCK32, done.open_day)
    return [counts.first_day(key) for (key,) in fetch(PERIODS, counts.start(BLOCK32, done.blocks[0]), end, end)]


def _played(numbers: range) -> range:
    """Return the range `numbers` of days. A long range is shortened to the days from the first to the last play."""
    return numbers if len(numbers) <= MANY_DAYS else blocks.progress().within(numbers)


def counts_by_day(kind: int, subject: int, numbers: range) -> dict[int, tuple[int, int]]:
    """Return the numbers of plays and listeners of a track, album or artist by day, for the days with plays."""
    rows = _stream(counts.starts(_played(numbers)), kind, [subject])  # a year of large sets would make the heap grow
    return {period - counts.ORIGIN: (plays, listeners.count(packed)) for _, period, plays, packed in rows}


def counts_of(kind: int, subject: int, parts: Sequence[range]) -> list[tuple[int, int]]:
    """Return the numbers of plays and distinct listeners of a subject in each of some adjoining ranges of days."""
    starts = [days.start for days in parts]
    sums = [_Sum(LARGEST_IN_STREAM) for _ in parts]
    numbers = counts.starts(_played(range(starts[0], parts[-1].stop)))
    for _, period, plays, packed in _stream(numbers, kind, [subject]):
        sums[bisect_right(starts, period - counts.ORIGIN) - 1].add(plays, packed)
    return [(each.plays, len(each.stats().listeners)) for each in sums]


def days(kind: int, ids: Sequence[int], numbers: range) -> dict[int, PlayStats]:
    """Return the plays and listeners of all `ids` together by day. `ids` must be in ascending order.

    Only days in the range `numbers` that have plays are returned.
    """
    played = _played(numbers)
    if not played:
        return {}
    rows, values = counts.dense_rows(counts.starts(played), kind, ids)
    wanted = set(ids)
    plays: dict[int, int] = defaultdict(int)
    sets: dict[int, list[bytes]] = defaultdict(list)
    for subject, period, count, packed in sql.stream_rows(SETS.format(rows=rows), *values):
        if subject in wanted:
            plays[period - counts.ORIGIN] += count
            sets[period - counts.ORIGIN].append(packed)
    return {day: PlayStats(plays[day], listeners.union(some)) for day, some in sets.items()}


def spans(kind: int, ids: Collection[int]) -> list[tuple[range, list[int]]]:
    """Return ranges of days that together have all plays of `ids`, earliest first, each with the ids played in it.

    Ids of the last range, which is not in a block of 32 days yet, may have no plays in it.
    """
    done = blocks.progress()
    found: dict[int, list[int]] = defaultdict(list)
    for subject, period in counts.fetch_rows(STORED, counts.starts(complete_blocks(done), BLOCK32), kind, ids):
        found[period].append(subject)
    whole = [(counts.days_of(period << counts.REST_BITS), found[period]) for period in sorted(found)]
    return [*whole, (done.open_days, list(ids))]


def all_time_plays(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the all-time plays of each track, album or artist (`kind`) by id. Ids without plays are absent."""
    condition, value = sql.in_list(ids)
    rows = fetch(ALL_TIME_PLAYS[kind].format(among=condition), value)
    return {subject: int(plays) for subject, plays in rows}
