"""Read the play and listener counts of tracks, albums and artists, for ranges of days and for all time.

Whole months are read from monthly rollups. Other days are read from weekly rollups if there are any, else from
daily rollups. Single plays are read for the last day of a window that ends within a day.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyroaring import BitMap

from musicsvc.store.engine import dialect, sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import daily, subjects
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import histograms, listeners, monthly, parts, weekly
from musicsvc.store.plays.rollups.histograms import Histogram
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

OLDEST_OPEN = daily.FIRST_SINCE.format(since=f"block * {monthly.DAYS}")
WATERMARK = f"SELECT block, stretch, kept_from, {daily.FIRST}, {OLDEST_OPEN}, {daily.LAST} FROM play_mark"  # noqa: S608 - constants
# The numbers are literals: everybody who reads a window on the same day uses the same statement.
MONTHS = f"""
    SELECT subject, block * {monthly.DAYS}, {monthly.DAYS}, plays{{sets}} FROM play_block
    WHERE kind = ? AND subject {{subjects}} AND block {{numbers}}
"""  # noqa: S608 - constants
WEEKS = f"""
    SELECT subject, stretch * {weekly.DAYS}, {weekly.DAYS}, plays{{sets}} FROM play_stretch
    WHERE kind = ? AND subject {{subjects}} AND stretch {{numbers}}
"""  # noqa: S608 - constants
DAYS = f"SELECT {daily.SUBJECT}, {daily.DAY}, 1, plays{{sets}} FROM {{{{rows}}}}"  # noqa: S608 - our own names
NOT_IN_WEEKS = f"""
    AND ({daily.SUBJECT}, {daily.DAY} / {weekly.DAYS}) NOT IN (
        SELECT subject, stretch FROM play_stretch WHERE kind = ? AND subject {{subjects}} AND stretch {{numbers}}
    )
"""  # noqa: S608 - a constant
SPAN = f"SELECT {daily.FIRST}, {daily.LAST}"
MANY_DAYS = 400  # a longer list of numbers in a statement costs more than to look for the first and the last play
POPULAR = "SELECT DISTINCT subject FROM play_stretch WHERE kind = ? AND subject {subjects} AND stretch {numbers}"
SETS = ", listeners"
DAYS_AND_LISTENERS = DAYS.format(sets=SETS)
ALL_TIME_PLAYS = {
    TRACK: "SELECT track_id, plays FROM track_plays WHERE track_id {among}",
    ALBUM: """
        SELECT t.album_id, sum(p.plays) FROM track t JOIN track_plays p ON p.track_id = t.id
        WHERE t.album_id {among} GROUP BY t.album_id
    """,
    ARTIST: """
        SELECT l.artist_id, sum(p.plays) FROM track_artist l JOIN track_plays p ON p.track_id = l.track_id
        WHERE l.artist_id {among} GROUP BY l.artist_id
    """,
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
        ((watermark, open_week, kept_from, first_day, oldest, newest),) = fetch(WATERMARK)
        self._windows = [window.countable(kept_from) for window in windows]
        self._all_time = all_time
        self._open_day = watermark * monthly.DAYS
        days = {*range(oldest, newest + 1)} if all_time and oldest is not None else set()
        months: list[int] = []
        for window in self._windows if newest is not None else ():
            # Months before and after all plays are left out.
            first = max(window.first, first_day // monthly.DAYS * monthly.DAYS)
            end = min(window.end, (newest // monthly.DAYS + 1) * monthly.DAYS)
            low, high = -(-first // monthly.DAYS), min(end // monthly.DAYS, watermark)
            if low < high:
                months += range(low, high)
                days.update(range(first, low * monthly.DAYS), range(high * monthly.DAYS, end))
            else:
                days.update(range(first, end))
        cuts = {bound for window in self._windows for bound in (window.first, window.end)}
        weeks = [week for week in weekly.within(days, open_week) if not cuts.intersection(weekly.days_of(week)[1:])]
        in_weeks = {day for week in weeks for day in weekly.days_of(week)}
        self._months = f"< {watermark}" if all_time else _numbers(months)
        self._weeks, self._in_weeks = weeks, in_weeks
        self._others, self._days = days - in_weeks, days

    def read(self, kind: int, ids: Collection[int]) -> dict[int, list[PlayStats]]:
        """Return a list of `PlayStats` for each id: one per window, then one of all time if `all_time` was set."""
        return self._add_up(kind, ids, self._rows(kind, ids, SETS))

    def stream(self, kind: int, ids: Sequence[int]) -> dict[int, list[PlayStats]]:
        """Do the same as `read` without holding all rows in memory. Pass some hundreds of `ids` in ascending order."""
        popular = self._popular(kind, ids)
        found: dict[int, list[PlayStats]] = {}
        for start in range(0, len(popular), POPULAR_PER_BATCH):
            found |= self.read(kind, popular[start : start + POPULAR_PER_BATCH])
        others = [each for each in ids if each not in found]
        if others:
            # Looking for weekly counts would cost more than it saves, as most tracks have none.
            found |= self._add_up(kind, others, self._streamed(kind, others), LARGEST_IN_STREAM)
        return {each: found[each] for each in ids}

    def _streamed(self, kind: int, ids: Sequence[int]) -> Iterator[Any]:
        """Yield rows of monthly and daily counts that together have all plays of `ids`."""
        if self._months:
            condition, values = dialect.in_range_or_list(ids)
            query = MONTHS.format(sets=SETS, subjects=condition, numbers=self._months)
            yield from sql.stream_rows(query, kind, *values)
        if self._days:
            rows, values = daily.dense_rows(self._days, kind, ids)
            yield from sql.stream_rows(DAYS_AND_LISTENERS.format(rows=rows), *values)

    def _popular(self, kind: int, ids: Sequence[int]) -> list[int]:
        """Return the ids of the tracks, albums or artists that have weekly counts."""
        return [each for (each,) in _fetch(POPULAR, "", kind, ids, _numbers(self._weeks))]

    def plays(self, kind: int, ids: Collection[int]) -> dict[int, int]:
        """Return the number of plays in all the windows of this reader together, by id.

        `ids` are those of tracks, albums or artists. Ids without plays are absent.
        """
        found: dict[int, int] = defaultdict(int)
        for window in self._windows:
            for subject, some in parts.of_day(kind, ids, window).items():
                found[subject] += sum(plays for plays, _ in some)
        for subject, _, _, plays in self._rows(kind, ids, ""):
            found[subject] += plays
        return found

    def histogram(self, kind: int, ids: Collection[int]) -> Histogram:
        """Return the histogram of all plays of these tracks, albums or artists in all windows."""
        return histograms.unpack(row[4] for row in self._rows(kind, ids, ", histogram"))

    def _rows(self, kind: int, ids: Collection[int], sets: str) -> list[Any]:
        """Return rows of monthly, weekly and daily counts that together have all plays of `ids`: as few as possible.

        `sets`: SQL for more columns (listeners, histogram).
        """
        months = _fetch(MONTHS, sets, kind, ids, self._months)
        query = DAYS.format(sets=sets)
        days = daily.fetch_rows(query, self._others, kind, ids)
        if not self._weeks:
            return months + days
        numbers = _numbers(self._weeks)
        weeks = _fetch(WEEKS, sets, kind, ids, numbers)
        counts = Counter(row[0] for row in weeks)
        if without := [each for each in ids if not counts[each]]:
            days += daily.fetch_rows(query, self._in_weeks, kind, without)
        if partly := [each for each in ids if 0 < counts[each] < len(self._weeks)]:
            condition, value = subjects.among(partly)
            query += NOT_IN_WEEKS.format(subjects=condition, numbers=numbers)
            days += daily.fetch_rows(query, self._in_weeks, kind, partly, kind, value)
        return months + weeks + days

    def _add_up(
        self, kind: int, ids: Collection[int], rows: Iterable[Any], largest: int = LARGEST
    ) -> dict[int, list[PlayStats]]:
        sums: dict[int, list[_Sum]] = defaultdict(lambda: [_Sum(largest) for _ in (*self._windows, None)])
        ever: dict[int, int] = defaultdict(int)
        for subject, first, length, plays, packed in rows:
            sums[subject][self._place(first, first + length)].add(plays, packed)
            if length == monthly.DAYS or first >= self._open_day:  # else counted with its month
                ever[subject] += plays
        for place, window in enumerate(self._windows):
            for subject, some in parts.of_day(kind, ids, window).items():
                for plays, packed in some:
                    sums[subject][place].add(plays, packed)
        return {each: self._stats(sums.get(each, ()), ever[each]) for each in ids}

    def _place(self, first: int, end: int) -> int:
        """Return the index of the window with the days `first` to `end` - 1, or the number of windows if none has."""
        for place, window in enumerate(self._windows):
            if window.first <= first and end <= window.end:
                return place
        return len(self._windows)

    def _stats(self, sums: Sequence[_Sum], plays: int) -> list[PlayStats]:
        if not sums:
            return [NO_PLAYS] * (len(self._windows) + self._all_time)
        stats = [each.stats() if each.plays else NO_PLAYS for each in sums]
        if not self._all_time:
            return stats[:-1]
        sets = [each.listeners for each in stats if each.plays]
        return [*stats[:-1], PlayStats(plays, sets[0] if len(sets) == 1 else BitMap.union(*sets))]


def _numbers(numbers: Sequence[int]) -> str:
    return f"IN ({', '.join(map(str, numbers))})" if numbers else ""


def _fetch(query: str, sets: str, kind: int, ids: Collection[int], numbers: str) -> list[Any]:
    if not numbers:
        return []
    condition, value = subjects.among(ids)
    return fetch(query.format(sets=sets, subjects=condition, numbers=numbers), kind, value)


def _played(numbers: range) -> range:
    """Return the range `numbers` of days. A long range is shortened to the days from the first to the last play."""
    if len(numbers) <= MANY_DAYS:
        return numbers
    ((oldest, newest),) = fetch(SPAN)
    return range(0) if oldest is None else range(max(numbers.start, oldest), min(numbers.stop, newest + 1))


def counts_by_day(kind: int, subject: int, numbers: range) -> dict[int, tuple[int, int]]:
    """Return the numbers of plays and listeners of a track, album or artist by day, for the days with plays."""
    played = _played(numbers)
    counts: dict[int, tuple[int, int]] = {}
    months = range(played.start // monthly.DAYS, -(-played.stop // monthly.DAYS))
    stored = {month: found for (_, month), found in monthly.stored_days(kind, [subject], months).items() if found}
    for month, found in stored.items():
        counts |= {
            day: each for day, each in zip(monthly.days_of(month), found, strict=True) if day in played and each[0]
        }
    others = [day for day in played if day // monthly.DAYS not in stored]
    rows = daily.fetch_rows(DAYS_AND_LISTENERS, others, kind, [subject])
    return counts | {day: (plays, listeners.count(packed)) for _, day, _, plays, packed in rows}


def days(kind: int, ids: Sequence[int], numbers: range) -> dict[int, PlayStats]:
    """Return the plays and listeners of all `ids` together by day. `ids` must be in ascending order.

    Only days in the range `numbers` that have plays are returned.
    """
    played = _played(numbers)
    if not played:
        return {}
    rows, values = daily.dense_rows(played, kind, ids)
    wanted = set(ids)
    plays: dict[int, int] = defaultdict(int)
    sets: dict[int, list[bytes]] = defaultdict(list)
    for subject, day, _, count, packed in sql.stream_rows(DAYS_AND_LISTENERS.format(rows=rows), *values):
        if subject in wanted:
            plays[day] += count
            sets[day].append(packed)
    return {day: PlayStats(plays[day], listeners.union(some)) for day, some in sets.items()}


def all_time_plays(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the all-time plays of each track, album or artist (`kind`) by id. Ids without plays are absent."""
    condition, value = dialect.in_list(ids)
    rows = fetch(ALL_TIME_PLAYS[kind].format(among=condition), value)
    return {subject: int(plays) for subject, plays in rows}
