"""Collect the data of reports on an account, an artist, album or track, or the whole catalog.

Each listener is counted once.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from musicsvc.store.engine.sql import batches
from musicsvc.store.insights import charts, export_rows, figures, rankings, scopes
from musicsvc.store.insights.charts import Chart
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import first_plays, listening, milestones, releases
from musicsvc.store.insights.listening.listening import Hours, Listening
from musicsvc.store.insights.listening.milestones import Milestones
from musicsvc.store.insights.listening.releases import NEWEST, Compared, Release
from musicsvc.store.insights.listening.scope_totals import DetailedTotals, ScopeTotals, Total
from musicsvc.store.insights.rankings import Counted, CountedOfArtist, Ranked
from musicsvc.store.insights.scopes import Part, Scope
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import counts, reader
from musicsvc.store.plays.rollups.reader import Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

TOP = {TRACK: 10, ALBUM: 5, ARTIST: 5}
WITH_MILESTONES = 5  # of each kind


class TopRow(NamedTuple):
    """One of the most played tracks, albums or artists, with the names of its artists and the day of its first play.

    `codes`: the values of `export_rows.OF_TRACK` or `OF_ALBUM`.
    """

    ranked: Ranked
    artists: tuple[str, ...]
    plays_change: float | None
    first_day: int
    codes: tuple[str | None, ...]


class PlayCounts(NamedTuple):
    """Plays and distinct listeners of a day."""

    plays: int
    listeners: int


class SubjectMilestones(NamedTuple):
    """The milestones of a track, album or artist."""

    subject: Subject
    name: str
    milestones: Milestones


class Details(NamedTuple):
    """Further data of a full report: skips and completion, hours of the week, milestones, and compared albums."""

    listening: Listening
    hours: Hours
    milestones: list[SubjectMilestones]
    releases: list[Release]
    days: int  # since the release, at most


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of a report on an account, an artist, an album, a track or (without `name`) the whole catalog.

    `top` has the top tracks.
    """

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
    details: Details | None = None


def build(scope: Scope, window: Window) -> Overview:
    """Collect the data of a short report. Use it in a transaction."""
    with scopes.limited_memory(scope):
        return _Build(scope, window).short()


def build_for_print(scope: Scope, window: Window, now: int, compared: Compared = NEWEST) -> Overview:
    """Collect the data of a full report. Use it in a transaction. `compared`: the albums to compare.

    Unlike a short report, a full report has top albums and artists, the daily plays of the earlier window, the last day
    with plays, and `details`.
    """
    with scopes.limited_memory(scope):
        found, heard, hours = _Build(scope, window).whole()
        tops = {ARTIST: found.top_artists, ALBUM: found.top_albums, TRACK: found.top}
        reached = [each for kind, rows in tops.items() for each in _milestones(kind, rows[:WITH_MILESTONES])]
        of_albums = releases.compare(scope, window, now, compared)
        return replace(found, details=Details(heard, hours, reached, of_albums, compared.days))


class _Build:
    """Collects the data of a report."""

    def __init__(self, scope: Scope, window: Window) -> None:
        self._scope, self._window = scope, window
        self._ids = {kind: scope.ids(kind) for kind in (TRACK, ALBUM, ARTIST)}
        self._parts = list(scopes.parts(scope, self._ids[ARTIST]))

    def short(self) -> Overview:
        if (subject := self._only_subject()) is not None:
            return self._overview(figures.figures(subject, self._window), charts.build(subject, self._window))
        totals = ScopeTotals(self._window)
        totals.add_all(self._parts)
        return self._overview(totals.figures(), totals.chart())

    def whole(self) -> tuple[Overview, Listening, Hours]:
        """Return the data of a full report without `details`, and two parts of the details: `listening` and `hours`."""
        window = self._window
        if (subject := self._only_subject()) is not None:
            found = self._overview(figures.figures(subject, window), charts.build(subject, window))
            heard, hours = listening.build(subject, window)
        else:
            totals = DetailedTotals(window)
            totals.add_all(self._parts)
            found = self._overview(totals.figures(), totals.chart())
            heard, hours = totals.listening(), totals.hours()
        whole = replace(
            found,
            top_albums=self._top(ALBUM),
            top_artists=self._top(ARTIST),
            before=self._before(),
            last_played=None if found.figures.plays else _last_played(self._parts[0]),
        )
        return whole, heard, hours

    def _before(self) -> list[PlayCounts]:
        """Return the plays and listeners of each day of the earlier window, which may end within a day."""
        window = self._window.before
        if (subject := self._only_subject()) is None:
            return _counts_by_day(self._parts, window)
        days = reader.counts_by_day(*subject, window.numbers)
        if window.seconds:
            rest = Reader(window._replace(first=window.end), all_time=False)
            ((part,),) = rest.read(subject.kind, [subject.id]).values()
            days[window.end] = part.plays, len(part.listeners)
        return [PlayCounts(*days.get(day, (0, 0))) for day in range(window.first, window.last + 1)]

    def _only_subject(self) -> Subject | None:
        """Return the only artist, album or track of the report, whose figures need no adding up.

        Return None if there are several parts.
        """
        kind, ids, _ = self._parts[0]
        return Subject(kind, ids[0]) if len(ids) == len(self._parts) == 1 else None

    def _overview(self, found: Figures, chart: Chart) -> Overview:
        return Overview(
            name=scopes.name(self._scope),
            figures=found,
            chart=chart,
            tracks=len(self._ids[TRACK]),
            albums=len(self._ids[ALBUM]),
            artists=len(self._ids[ARTIST]),
            top=self._top(TRACK),
        )

    def _top(self, kind: int) -> list[TopRow]:
        counted = Counted(kind)
        if kind == ALBUM and self._scope.artist is not None:
            counted = CountedOfArtist(self._scope.artist, [*self._ids[kind]])
        return _top(kind, self._ids[kind], self._window, counted)


def _counts_by_day(parts: Iterable[Part], window: Window) -> list[PlayCounts]:
    """Return the plays and listeners of all parts together, for each day of the window.

    If the window ends within a day, the last entry counts only the part of that day.
    """
    days: dict[int, Total] = defaultdict(Total)
    rest = Reader(window._replace(first=window.end), all_time=False) if window.seconds else None
    for kind, ids, times in parts:
        for batch in batches(ids, export_rows.SUBJECTS_PER_BATCH):
            for day, stats in reader.days(kind, batch, window.numbers).items():
                days[day].add(stats, times)
            for (stats,) in rest.stream(kind, batch).values() if rest is not None else ():
                days[window.end].add(stats, times)
    numbers = range(window.first, window.last + 1)
    return [PlayCounts(days[day].plays, len(days[day].listeners)) for day in numbers]


def _last_played(part: Part) -> int | None:
    """Return the last day on which one of the part's artists, albums or tracks was played, or None if none was."""
    found = [_newest_day(part.kind, some) for some in batches(part.ids, export_rows.SUBJECTS_PER_BATCH)]
    return max((day for day in found if day is not None), default=None)


def _newest_day(kind: int, ids: list[int]) -> int | None:
    for days, some in reversed(reader.spans(kind, ids)):
        if played := counts.days_stored(days, kind, some):
            return played[-1]
    return None


def _top(kind: int, ids: Iterable[int], window: Window, counted: Counted) -> list[TopRow]:
    """Return the most played tracks, albums or artists of the window, most played first."""
    order = rankings.most_played(kind, ids, window, TOP[kind], counted)
    if not order:
        return []
    reader = Reader(window, all_time=False)
    within, parts = reader.read(kind, order), counted.parts(order, reader)
    before = Reader(window.before, all_time=False).plays(kind, order)
    ever, first_days = all_time_plays(kind, order), first_plays.by_id(kind, order)
    known, authors = export_rows.named(kind, order), export_rows.authors(kind, order)
    return [
        TopRow(
            Ranked(each, known[each].name, ever[each], stats.plays, len(stats.listeners), parts.get(each)),
            tuple(authors.get(each, ())),
            figures.change(stats.plays, before.get(each, 0)),
            first_days[each],
            known[each].codes,
        )
        for each, (stats,) in within.items()
    ]


def _milestones(kind: int, rows: list[TopRow]) -> list[SubjectMilestones]:
    found = milestones.build_each(kind, [row.ranked.id for row in rows])
    return [SubjectMilestones(Subject(kind, row.ranked.id), row.ranked.name, found[row.ranked.id]) for row in rows]
