"""Compute statistics, chart and ranking of a whole scope. A listener of several tracks or artists is counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyroaring import BitMap, BitMap64

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import charts, engagement, export_rows, figures, rankings, scopes
from musicsvc.store.insights.charts import Chart, Point
from musicsvc.store.insights.engagement import Engagement
from musicsvc.store.insights.rankings import Ranked
from musicsvc.store.plays import subjects
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import PlayStats, Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from musicsvc.store.insights.figures import Figures
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

NEWEST_DAY = "SELECT day FROM play_day WHERE kind = ? AND subject {subjects} ORDER BY day DESC LIMIT 1"
TOP = {TRACK: 10, ALBUM: 5, ARTIST: 5}


class TopRow(NamedTuple):
    """One of the most played tracks, albums or artists, with the names of its artists."""

    ranked: Ranked
    artists: tuple[str, ...]
    plays_change: float | None


class PlayCounts(NamedTuple):
    """Plays and distinct listeners of a day."""

    plays: int
    listeners: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of a report on an account, an artist or (without `name`) the whole catalog. `top` has the top tracks."""

    name: str | None
    figures: Figures
    chart: Chart
    tracks: int
    albums: int
    artists: int
    top: list[TopRow]
    top_albums: list[TopRow] = field(default_factory=list)
    top_artists: list[TopRow] = field(default_factory=list)
    before: list[PlayCounts] = field(default_factory=list)  # of the days of the window before
    last_played: int | None = None  # the newest day with plays, if the window has none


def build(scope: Scope, window: Window, *, for_print: bool = False) -> Overview:
    """Collect a report's data. Use it in a transaction.

    `for_print` adds the most played albums and artists, the days of the window before, and the newest day with plays.
    """
    with sql.without_memory_map():
        found = _build(scope, window, TOP if for_print else {TRACK: TOP[TRACK]})
        return _with_comparison(found, scope, window) if for_print else found


def _build(scope: Scope, window: Window, wanted: Mapping[int, int]) -> Overview:
    ids = {kind: scope.ids(kind) for kind in (TRACK, ALBUM, ARTIST)}
    found, chart = _statistics(scope, ids[ARTIST], window)
    tops = {kind: _top(kind, ids[kind], window, wanted[kind]) if kind in wanted else [] for kind in TOP}
    return Overview(
        name=scopes.name(scope),
        figures=found,
        chart=chart,
        tracks=len(ids[TRACK]),
        albums=len(ids[ALBUM]),
        artists=len(ids[ARTIST]),
        top=tops[TRACK],
        top_albums=tops[ALBUM],
        top_artists=tops[ARTIST],
    )


def _with_comparison(found: Overview, scope: Scope, window: Window) -> Overview:
    artists = scope.ids(ARTIST)
    last_played = None if found.figures.plays else _last_played(artists)
    return replace(found, before=_counts_by_day(scope, artists, window.before), last_played=last_played)


def _counts_by_day(scope: Scope, artists: BitMap64, window: Window) -> list[PlayCounts]:
    """Return the plays and listeners of each day, read from the play counts of the scope's artists.

    If the window ends within a day, the last point is that part of the day.
    """
    days: dict[int, _Total] = defaultdict(_Total)
    rest = Reader(window._replace(first=window.end), all_time=False) if window.seconds else None
    for kind, ids, times in _parts(scope, artists):
        for batch in scopes.batches(ids, export_rows.SUBJECTS_PER_BATCH):
            for day, stats in reader.days(kind, batch, window.numbers).items():
                days[day].add(stats, times)
            for (stats,) in rest.stream(kind, batch).values() if rest is not None else ():
                days[window.end].add(stats, times)
    numbers = range(window.first, window.last + 1)
    return [PlayCounts(days[day].plays, len(days[day].listeners)) for day in numbers]


def _parts(scope: Scope, artists: BitMap64) -> Iterator[tuple[int, BitMap64, int]]:
    """Yield (kind, ids, times): the artists, whose plays count once, and tracks whose plays correct their sum.

    An artist has the plays of all its tracks. Tracks of several artists are then subtracted, and tracks of none added.
    """
    yield ARTIST, artists, 1
    for count, tracks in scope.uneven().items():
        yield TRACK, tracks, 1 - count


def _last_played(artists: BitMap64) -> int | None:
    """Return the newest day on which one of the artists was played."""
    return max(
        (day for batch in scopes.batches(artists, export_rows.SUBJECTS_PER_BATCH) for (day,) in _newest_day(batch)),
        default=None,
    )


def _newest_day(artists: list[int]) -> list[Any]:
    condition, value = subjects.among(artists)
    return fetch(NEWEST_DAY.format(subjects=condition), ARTIST, value)


def _statistics(scope: Scope, artists: BitMap64, window: Window) -> tuple[Figures, Chart]:
    """Return statistics and chart of the scope's tracks, read from the play counts of its artists."""
    parts = list(_parts(scope, artists))
    if len(artists) == len(parts) == 1:
        (only,) = artists
        subject = Subject(ARTIST, only)
        return figures.figures(subject, window), charts.build(subject, window)
    whole = _Whole(window)
    for kind, ids, times in parts:
        whole.add(kind, ids, times)
    return whole.figures(), whole.chart()


def _top(kind: int, ids: Iterable[int], window: Window, count: int) -> list[TopRow]:
    """Return the most played tracks, albums or artists of the window, most played first."""
    order = rankings.most_played(kind, ids, window, count)
    if not order:
        return []
    within = Reader(window, all_time=False).read(kind, order)
    before = Reader(window.before, all_time=False).plays(kind, order)
    ever = all_time_plays(kind, order)
    names, authors = export_rows.names(kind, order), export_rows.authors(kind, order)
    return [
        TopRow(
            Ranked(each, names[each], ever[each], stats.plays, len(stats.listeners)),
            tuple(authors.get(each, ())),
            figures.change(stats.plays, before.get(each, 0)),
        )
        for each, (stats,) in within.items()
    ]


@dataclass(slots=True)
class _Total:
    """The sum of the plays and the union of the listeners of many artists or tracks."""

    plays: int = 0
    listeners: BitMap = field(default_factory=BitMap)

    def add(self, stats: PlayStats, times: int) -> None:
        self.plays += times * stats.plays
        self.listeners |= stats.listeners


class _Whole:
    """Computes the statistics and the chart of many artists and tracks together, which are added in batches."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._reader = Reader(window, window.before)
        self._totals = [_Total() for _ in ("within", "before", "ever")]
        self._days: dict[int, _Total] = defaultdict(_Total)
        self._given = Engagement(Counter(), Counter())

    def add(self, kind: int, ids: Iterable[int], times: int = 1) -> None:
        """Add plays, likes and reposts `times` times (negative: subtract), and listeners once. `ids` must ascend."""
        for batch in scopes.batches(ids, export_rows.SUBJECTS_PER_BATCH):
            for stats in self._reader.stream(kind, batch).values():
                for total, some in zip(self._totals, stats, strict=True):
                    total.add(some, times)
            for day, some in reader.days(kind, batch, self._window.numbers).items():
                self._days[day].add(some, times)
            for counted, given in zip(self._given, engagement.by_day(kind, batch, self._window), strict=True):
                counted.update({day: times * count for day, count in given.items()})

    def figures(self) -> Figures:
        stats = [PlayStats(total.plays, total.listeners) for total in self._totals]
        return figures.build(self._window, stats, *(given.total() for given in self._given))

    def chart(self) -> Chart:
        likes, reposts = self._given
        days = [(day, self._days[day]) for day in self._window.numbers]
        points = [Point(some.plays, len(some.listeners), likes[day], reposts[day]) for day, some in days]
        whole = self._totals[0]
        return Chart(self._window, points, Point(whole.plays, len(whole.listeners), likes.total(), reposts.total()))
