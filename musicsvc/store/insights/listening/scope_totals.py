"""Figures of a whole account or catalog: add up those of its artists and tracks, counting each listener once."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyroaring import BitMap

from musicsvc.store.engine.sql import batches
from musicsvc.store.insights import engagement, export_rows, figures
from musicsvc.store.insights.charts import Chart, Point
from musicsvc.store.insights.engagement import Engagement
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import first_plays, listening
from musicsvc.store.insights.listening.listening import Hours, Listening
from musicsvc.store.insights.scopes import Part
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import histograms, reader
from musicsvc.store.plays.rollups.reader import PlayStats, Reader


@dataclass(slots=True)
class Total:
    """The sum of the plays, and the set of the listeners, of many artists or tracks."""

    plays: int = 0
    listeners: BitMap = field(default_factory=BitMap)

    def add(self, stats: PlayStats, times: int) -> None:
        self.plays += times * stats.plays
        self.listeners |= stats.listeners


class ScopeTotals:
    """Adds up the plays, listeners, likes and reposts of artists and tracks. Returns total figures and a chart."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._reader = Reader(*self._windows())
        self._totals = [Total() for _ in (*self._windows(), "ever")]
        self._days: dict[int, Total] = defaultdict(Total)
        self._given = Engagement(Counter(), Counter())
        self._first_day: int | None = None

    def _windows(self) -> tuple[Window, ...]:
        """Return the ranges of days to add up: the window, its earlier window and, in a subclass, more."""
        return self._window, self._window.before

    def add_all(self, parts: Iterable[Part]) -> None:
        """Add artists and tracks: plays, likes and reposts multiplied by the part's `times`, each listener once."""
        for part in parts:
            for batch in batches(part.ids, export_rows.SUBJECTS_PER_BATCH):
                self._add(part.kind, batch, part.times)

    def _add(self, kind: int, batch: list[int], times: int) -> None:
        known = [] if self._first_day is None else [self._first_day]
        if times > 0:
            first = first_plays.by_id(kind, batch, before=self._first_day)
            self._first_day = min([*known, *first.values()], default=None)
        for stats in self._reader.stream(kind, batch).values():
            for total, some in zip(self._totals, stats, strict=True):
                total.add(some, times)
        for day, some in reader.days(kind, batch, self._window.numbers).items():
            self._days[day].add(some, times)
        for counted, given in zip(self._given, engagement.by_day(kind, batch, self._window), strict=True):
            counted.update({day: times * count for day, count in given.items()})

    def figures(self) -> Figures:
        within, before, *_, ever = (PlayStats(total.plays, total.listeners) for total in self._totals)
        likes, reposts = (given.total() for given in self._given)
        return figures.build(self._window, (within, before, ever), likes, reposts, self._first_day)

    def chart(self) -> Chart:
        likes, reposts = self._given
        days = [(day, self._days[day]) for day in self._window.numbers]
        points = [Point(some.plays, len(some.listeners), likes[day], reposts[day]) for day, some in days]
        whole = self._totals[0]
        return Chart(self._window, points, Point(whole.plays, len(whole.listeners), likes.total(), reposts.total()))


class DetailedTotals(ScopeTotals):
    """Totals that also have skips, completion, new listeners, and plays by hour of the week."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._histograms = Reader(window, all_time=False)
        self._histogram = histograms.unpack(())

    def _windows(self) -> tuple[Window, ...]:
        window, before = super()._windows()
        # The last two have all other days before the window, also the day of which `before` has a part.
        return window, before, Window("", 0, before.first), Window("", before.end, window.first)

    def _add(self, kind: int, batch: list[int], times: int) -> None:
        super()._add(kind, batch, times)
        self._histogram = self._histogram.plus(self._histograms.histogram(kind, batch), times)

    def listening(self) -> Listening:
        within, *earlier, _ = self._totals
        known = BitMap.union(*(total.listeners for total in earlier))
        returning = within.listeners.intersection_cardinality(known)
        return listening.assemble(self._window, self._histogram, PlayStats(within.plays, within.listeners), returning)

    def hours(self) -> Hours:
        return Hours(self._window, listening.by_day(self._histogram.hours))
