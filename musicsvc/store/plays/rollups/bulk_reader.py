"""How often many tracks, albums or artists were played, and by whom: audience.py for some hundreds at once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyroaring import BitMap

from musicsvc.store.engine import dialect, sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import listeners, monthly
from musicsvc.store.plays.rollups.reader import Audience

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from musicsvc.store.plays.periods import Window

FROM_BLOCKS = """
    SELECT subject, block, plays, listeners FROM play_block
    WHERE kind = ? AND subject {subjects} AND block < ?
"""
FROM_DAYS = """
    SELECT subject, day, plays, listeners FROM play_day
    WHERE day IN ({days}) AND kind = ? AND subject {subjects}
"""
NOBODY = Audience(0, BitMap())
MUCH = 64 * 1024  # bytes of sets that are kept for one subject before they are united
SPAN = "SELECT min(day), max(day) FROM play_day WHERE day >= ?"


@dataclass(slots=True)
class _Part:
    """Some of the rows of a subject."""

    plays: int = 0
    sets: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, plays: int, packed: bytes) -> None:
        self.plays += plays
        self.sets.append(packed)
        self.size += len(packed)
        if self.size > MUCH:  # what is played much has large sets on each day
            self.sets = [listeners.merge(self.sets)]
            self.size = 0

    @property
    def audience(self) -> Audience:
        return Audience(self.plays, listeners.union(self.sets))


class Reader:
    """Reads the audiences in these windows, none of which has a day of another, and of all time."""

    def __init__(self, *windows: Window) -> None:
        """Takes a few queries; within a unit."""
        self._windows = windows
        self._mark = monthly.mark().block
        oldest, newest = fetch(SPAN, self._mark * monthly.DAYS)[0]
        kept = [] if oldest is None else range(oldest, newest + 1)
        self._days = sorted({*kept, *self._loose()})

    def _loose(self) -> Iterator[int]:
        """The days of the windows that are in no block which lies in the same window."""
        for window in self._windows:
            for day in range(window.first, window.end):
                first = day // monthly.DAYS * monthly.DAYS
                whole = window.first <= first and first + monthly.DAYS <= window.end
                if not whole or day // monthly.DAYS >= self._mark:
                    yield day

    def read(self, kind: int, ids: Sequence[int]) -> dict[int, list[Audience]]:
        """Of each subject that was ever played: the audience of each window, and last that of all time."""
        parts: dict[int, list[_Part]] = defaultdict(lambda: [_Part() for _ in (*self._windows, None)])
        ever: dict[int, int] = defaultdict(int)
        for subject, block, plays, packed in self._rows(FROM_BLOCKS, kind, ids, self._mark):
            ever[subject] += plays
            first = block * monthly.DAYS
            parts[subject][self._home(first, first + monthly.DAYS)].add(plays, packed)
        for subject, day, plays, packed in self._rows(FROM_DAYS, kind, ids) if self._days else ():
            if day >= self._mark * monthly.DAYS:  # what is older is counted with its block
                ever[subject] += plays
            parts[subject][self._home(day, day + 1)].add(plays, packed)
        wanted = set(ids)
        return {each: _audiences(some, ever[each]) for each, some in parts.items() if each in wanted}

    def _home(self, first: int, end: int) -> int:
        """The place of the window that has all of these days; past the windows where none has."""
        for place, each in enumerate(self._windows):
            if each.first <= first and end <= each.end:
                return place
        return len(self._windows)

    def _rows(self, query: str, kind: int, ids: Sequence[int], *last: int) -> Iterator[tuple[int, int, int, bytes]]:
        condition, values = dialect.in_range_or_list(ids)
        days = ", ".join(map(str, self._days))
        statement = query.format(subjects=condition, days=days)
        return sql.stream_rows(statement, kind, *values, *last)


def _audiences(parts: Sequence[_Part], plays: int) -> list[Audience]:
    heard = [part.audience if part.sets else NOBODY for part in parts]
    some = [each.listeners for each in heard if each.listeners]
    everybody = some[0] if len(some) == 1 else BitMap.union(NOBODY.listeners, *some)
    return [*heard[:-1], Audience(plays, everybody)]
