"""Compute statistics, chart and ranking of many tracks together. A listener of several tracks is counted once."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyroaring import BitMap

from musicsvc.store.engine import sql
from musicsvc.store.insights import engagement, figures, scopes
from musicsvc.store.insights.charts import Chart, Point
from musicsvc.store.insights.engagement import Engagement
from musicsvc.store.insights.export_rows import SUBJECTS_PER_BATCH, ExportRow, read_batch, rows
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.store.insights.figures import Figures
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

TOP_TRACKS, TOP_OTHERS = 10, 5


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of a report on an account, an artist or (without `name`) the whole catalog. `top` has the top tracks."""

    name: str | None
    figures: Figures
    chart: Chart
    tracks: int
    albums: int
    artists: int
    top: list[ExportRow]
    top_albums: list[ExportRow] = field(default_factory=list)
    top_artists: list[ExportRow] = field(default_factory=list)


def build(scope: Scope, window: Window, *, albums_and_artists: bool = False) -> Overview:
    """Collect a report's data, on request with the most played albums and artists. Use it in a transaction."""
    with sql.without_memory_map():
        return _build(scope, window, albums_and_artists=albums_and_artists)


def _build(scope: Scope, window: Window, *, albums_and_artists: bool) -> Overview:
    tracks = scope.ids(TRACK)
    whole = _Whole(window)
    for ids in scopes.batches(tracks, SUBJECTS_PER_BATCH):
        whole.add(ids)
    return Overview(
        name=scopes.name(scope),
        figures=whole.figures(),
        chart=whole.chart(),
        tracks=len(tracks),
        albums=len(scope.ids(ALBUM)),
        artists=len(scope.ids(ARTIST)),
        top=whole.top(),
        top_albums=_top(ALBUM, scope, window) if albums_and_artists else [],
        top_artists=_top(ARTIST, scope, window) if albums_and_artists else [],
    )


def _top(kind: int, scope: Scope, window: Window) -> list[ExportRow]:
    """Return the most played albums or artists of the window, most played first."""
    played = (row for row in rows(kind, scope, window) if row.figures.plays)
    return heapq.nlargest(TOP_OTHERS, played, key=lambda row: (row.figures.plays, row.figures.plays_total, row.id))


@dataclass(slots=True)
class _Total:
    """The sum of the plays and the union of the listeners of many tracks."""

    plays: int = 0
    listeners: BitMap = field(default_factory=BitMap)

    def add(self, stats: PlayStats) -> None:
        self.plays += stats.plays
        self.listeners |= stats.listeners


class _Whole:
    """Computes statistics, chart and ranking of many tracks together. Tracks are added in batches."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._reader = Reader(window, window.before)
        self._totals = [_Total() for _ in ("within", "before", "ever")]
        self._days: dict[int, _Total] = defaultdict(_Total)
        self._given = Engagement(Counter(), Counter())
        self._most: list[tuple[int, int, int]] = []

    def add(self, ids: Sequence[int]) -> None:
        """Add the plays, listeners, likes and reposts of the tracks with these ids. The ids must ascend."""
        stats = self._reader.stream(TRACK, ids)
        for each in stats.values():
            for total, some in zip(self._totals, each, strict=True):
                total.add(some)
        ranked = [(within.plays, ever.plays, track) for track, (within, _, ever) in stats.items()]
        self._most = heapq.nlargest(TOP_TRACKS, [*self._most, *ranked])
        for day, some in reader.days(TRACK, ids, self._window.numbers).items():
            self._days[day].add(some)
        for counted, given in zip(self._given, engagement.by_day(TRACK, ids, self._window), strict=True):
            counted.update(given)

    def figures(self) -> Figures:
        stats = [PlayStats(total.plays, total.listeners) for total in self._totals]
        return figures.build(self._window, stats, *(given.total() for given in self._given))

    def chart(self) -> Chart:
        likes, reposts = self._given
        days = [(day, self._days[day]) for day in self._window.numbers]
        points = [Point(some.plays, len(some.listeners), likes[day], reposts[day]) for day, some in days]
        whole = self._totals[0]
        return Chart(self._window, points, Point(whole.plays, len(whole.listeners), likes.total(), reposts.total()))

    def top(self) -> list[ExportRow]:
        """Return the most played tracks of the window, most played first."""
        order = [track for plays, _, track in self._most if plays]
        if not order:
            return []
        found = {row.id: row for row in read_batch(TRACK, sorted(order), self._window, self._reader)}
        return [found[track] for track in order]
