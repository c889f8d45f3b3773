"""Find the tracks or artists with the most plays, or whose plays grew most, from the top of each day's counts.

Adding up all rows of a month takes ten times as long as looking at their numbers, and most are of what was played once
or twice. So only rows with many plays are added up. What the others can have at most (`Bounds`) tells whose plays must
be known exactly, and whether the result is certain; if it is not, all rows are added up.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.reader import Reader

PLAYS = "SELECT plays FROM {rows} ORDER BY plays DESC LIMIT 1 OFFSET ?"
SUMS = f"""
    SELECT {counts.SUBJECT}, CAST(SUM(plays) AS BIGINT), COUNT(*) FROM {{rows}} AND plays >= ? GROUP BY 1
"""  # noqa: S608 - our own names
Ids = Sequence[int] | range  # ascending; a range may contain ids of others
FIRST_READ, FACTOR = 64, 16  # subjects whose plays are read exactly; more if these are not enough


class Bounds:
    """Plays of tracks or artists are between `low[id]` and `high(id)`; those not in `low` have at most `rest`."""

    def __init__(self) -> None:
        self.rest = 0
        self.low: dict[int, int] = defaultdict(int)
        self.known: dict[int, int] = defaultdict(int)  # what their rows that were read have of `rest`

    def add(self, rows: Collection[Sequence[int]], periods: int, least: int) -> None:
        """Add those of the rows of some periods that have at least `least` plays: id, sum of plays, number of rows."""
        self.rest += periods * (least - 1)
        for each, plays, number in rows:
            self.low[each] += plays
            self.known[each] += number * (least - 1)

    def high(self, each: int) -> int:
        return self.low.get(each, 0) + self.rest - self.known.get(each, 0)


def read(window: Window, kind: int, ids: Ids, popular: int, power: float) -> tuple[Bounds, int]:
    """Return bounds of the plays in the whole days of the window, and the fewest plays of a row that was read.

    They are enough for a result whose last one has `(days * plays) ** power`, where the `popular`th has `plays`
    on a day: so much is the difference of chance if `power` is 0.5. If `popular` is 0, all rows are read.
    """
    found, least = Bounds(), 1
    periods = Reader(window, all_time=False).periods if window.days else []
    if periods and popular:
        last = sorted(periods)[-2:][0]  # today is not over
        rows, values = counts.dense_rows([last], kind, ids)
        ((plays,),) = fetch(PLAYS.format(rows=rows), *values, popular) or ((0,),)
        days = window.days / counts.DAYS[last >> counts.LEVEL_SHIFT]
        least = max(2, 1 + int((days * plays) ** power / len(periods)))
    if periods:
        rows, values = counts.dense_rows(periods, kind, ids)
        found.add(fetch(SUMS.format(rows=rows), *values, least), len(periods), least)
    return found, least


def among(ids: Ids) -> tuple[str, list[Any]]:
    """Return an SQL condition that matches any of the ids, and the values of its placeholders."""
    if isinstance(ids, range):
        return "BETWEEN ? AND ?", [ids.start, ids.stop - 1]
    condition, value = sql.in_list(ids)
    return condition, [value]


def best(
    more: Bounds,
    less: Bounds,
    count: int,
    exactly: Callable[[Sequence[int]], Mapping[int, int]],
    *,
    newest: bool = True,
) -> list[int] | None:
    """Return the ids with the `count` largest positive differences of plays; of equal ones, the newest (oldest) first.

    `exactly`: returns the differences of those ids that may be returned. Returns None if the bounds are not enough.
    """
    pairs = [(low + more.rest - more.known[each] - less.low.get(each, 0), each) for each, low in more.low.items()]
    found: list[tuple[int, int]] = []
    order = 1 if newest else -1
    first, size = 0, FIRST_READ
    while some := heapq.nlargest(first + size, pairs)[first:]:
        if some[0][0] <= 0 or (len(found) == count and found[-1][0] > some[0][0]):
            break
        exact = exactly([each for _, each in some])
        found = heapq.nlargest(count, [*found, *((plays, order * each) for each, plays in exact.items() if plays > 0)])
        first, size = first + size, size * FACTOR
    is_certain = not more.rest or (len(found) == count and found[-1][0] > more.rest)
    return [order * each for _, each in found] if is_certain else None
