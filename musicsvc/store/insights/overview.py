"""Everything that is covered as one: its figures, its days, and what was played most; a listener counts once."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from musicsvc.clock import DAY
from musicsvc.store.engine import dialect, sql
from musicsvc.store.insights import scopes
from musicsvc.store.insights.charts import Chart, Point
from musicsvc.store.insights.export_rows import SUBJECTS_A_PIECE, Row, piece, rows
from musicsvc.store.insights.figures import Figures, change
from musicsvc.store.plays.rollups.bulk_reader import Reader
from musicsvc.store.plays.rollups.listeners import union
from musicsvc.store.plays.rollups.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

TOP, TOP_BESIDE = 10, 5  # tracks; albums and artists, which stand beside them
HEARD = """
    SELECT day, subject, plays, listeners FROM play_day
    WHERE day IN ({days}) AND kind = ? AND subject {subjects}
"""
GIVEN = f"""
    SELECT track_id, created_at / {DAY}, COUNT(*) FROM {{table}}
    WHERE track_id {{subjects}} AND created_at >= ? AND created_at < ?
    GROUP BY track_id, created_at / {DAY}
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Overview:
    """What a report tells; `name` is whom it is about, None for everybody."""

    name: str | None
    figures: Figures
    chart: Chart
    tracks: int
    albums: int
    artists: int
    top: list[Row]
    top_albums: list[Row] = field(default_factory=list)
    top_artists: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class _Sum:
    """Plays of many tracks, and everybody who listened."""

    plays: int = 0
    listeners: BitMap = field(default_factory=BitMap)

    def add(self, plays: int, listeners: BitMap) -> None:
        self.plays += plays
        self.listeners |= listeners


def of(scope: Scope, window: Window, *, albums_and_artists: bool = False) -> Overview:
    """The overview of what is covered, with the most played albums and artists where asked for; within a unit."""
    with sql.without_memory_map():
        return _of(scope, window, albums_and_artists=albums_and_artists)


def _of(scope: Scope, window: Window, *, albums_and_artists: bool) -> Overview:
    tracks = scope.ids(TRACK)
    whole = _Whole(window)
    for ids in scopes.pieces(tracks, SUBJECTS_A_PIECE):
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


def _top(kind: int, scope: Scope, window: Window) -> list[Row]:
    """The albums or artists that were played most in the window, in the order of rankings.py."""
    played = (row for row in rows(kind, scope, window) if row.figures.plays)
    return heapq.nlargest(TOP_BESIDE, played, key=lambda row: (row.figures.plays, row.figures.plays_total, row.id))


class _Whole:
    """Adds tracks up, some hundreds at a time."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._reader = Reader(window, window.before)
        self._sums = [_Sum() for _ in ("within", "before", "ever")]
        self._days: dict[int, _Sum] = defaultdict(_Sum)
        self._likes: Counter[int] = Counter()
        self._reposts: Counter[int] = Counter()
        self._most: list[tuple[int, int, int]] = []

    def add(self, ids: Sequence[int]) -> None:
        """Add these tracks, whose ids ascend."""
        ranked = []
        heard = self._reader.read(TRACK, ids)
        for track in ids:
            audiences = heard.get(track, ())
            for total, audience in zip(self._sums, audiences, strict=False):
                total.add(*audience)
            plays, ever = (audiences[0].plays, audiences[2].plays) if audiences else (0, 0)
            ranked.append((plays, ever, track))
        self._most = heapq.nlargest(TOP, [*self._most, *ranked])
        wanted = set(ids)
        self._add_days(ids, wanted)
        for table, given in (("track_like", self._likes), ("track_repost", self._reposts)):
            span = [self._window.starts, self._window.ends]
            for track, day, count in self._rows(GIVEN, ids, [], span, table=table):
                if track in wanted:
                    given[day] += count

    def _add_days(self, ids: Sequence[int], wanted: set[int]) -> None:
        sets: dict[int, list[bytes]] = defaultdict(list)
        days = ", ".join(map(str, range(self._window.first, self._window.end)))
        for day, track, plays, packed in self._rows(HEARD, ids, [TRACK], [], days=days):
            if track in wanted:
                self._days[day].plays += plays
                sets[day].append(packed)
        for day, some in sets.items():
            self._days[day].listeners |= union(some)

    def _rows(self, query: str, ids: Sequence[int], before: list[int], after: list[int], **more: str) -> Iterator[Any]:
        condition, values = dialect.in_range_or_list(ids)
        statement = query.format(subjects=condition, **more)
        return sql.stream_rows(statement, *before, *values, *after)

    def figures(self) -> Figures:
        """The figures of all tracks together."""
        within, before, ever = self._sums
        return Figures(
            window=self._window,
            plays_total=ever.plays,
            plays=within.plays,
            listeners_total=len(ever.listeners),
            listeners=len(within.listeners),
            likes=self._likes.total(),
            reposts=self._reposts.total(),
            plays_change=change(within.plays, before.plays),
            listeners_change=change(len(within.listeners), len(before.listeners)),
        )

    def chart(self) -> Chart:
        """Each day of the window, and the window."""
        points = []
        for day in range(self._window.first, self._window.end):
            heard = self._days.get(day, _Sum())
            points.append(Point(heard.plays, len(heard.listeners), self._likes[day], self._reposts[day]))
        all_days = self.figures()
        return Chart(self._window, points, Point(all_days.plays, all_days.listeners, all_days.likes, all_days.reposts))

    def top(self) -> list[Row]:
        """The tracks that were played most in the window, as rankings.py orders them."""
        order = [track for plays, _, track in self._most if plays]
        if not order:
            return []
        found = {row.id: row for row in piece(TRACK, sorted(order), self._window, self._reader)}
        return [found[track] for track in order]
