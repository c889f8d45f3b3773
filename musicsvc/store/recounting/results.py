"""Build figures of tracks, albums and artists from the rows that an engine returns."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Failure
from musicsvc.store.insights import figures
from musicsvc.store.insights.listening import listening
from musicsvc.store.insights.listening.listening import Hours, Listening
from musicsvc.store.insights.rankings import OfArtist, Ranked
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups.histograms import HOURS, PERCENT
from musicsvc.store.plays.subjects import NOUNS, Subject
from musicsvc.store.recounting import statements
from musicsvc.store.recounting.dump import TABLES, Dump
from musicsvc.store.recounting.engines import Engine
from musicsvc.store.recounting.statements import Row, Sources


class Ranking(NamedTuple):
    """The most played tracks or albums of a subject, and the number of all of them."""

    rows: list[Ranked]
    size: int


class Recounted(NamedTuple):
    """Recounted figures of a track, album or artist in a window. `days`: (plays, listeners) by day.

    `without_duration`, `without_length`: numbers of plays, the latter of tracks of unknown length.
    """

    subject: Subject
    name: str
    plays_total: int
    plays: int
    listeners_total: int
    listeners: int
    plays_before: int
    listeners_before: int
    plays_change: float | None
    listeners_change: float | None
    first_day: int | None
    without_duration: int
    without_length: int
    listening: Listening
    hours: Hours
    days: dict[int, tuple[int, int]]
    tracks: Ranking
    albums: Ranking

    @property
    def first_play(self) -> str | None:
        return None if self.first_day is None else to_date(self.first_day).isoformat()


def run(engine: Engine, dump: Dump, kind: int, ids: Sequence[int], window: Window) -> Iterator[Recounted]:
    """Yield the figures of tracks, albums or artists (`kind`) by ascending id; without `ids` of all of them.

    Raises Failure for an id that the dump does not have.
    """
    query = statements.build(kind, ids, window, _sources(engine, dump, window), engine.dialect)
    missing = set(ids)
    for subject, some in groupby(rows(engine.rows(query)), key=attrgetter("subject")):
        found = build(Subject(kind, subject), window, some)
        if found is not None:
            missing.discard(subject)
            yield found
    if missing:
        raise Failure(f"There is no {NOUNS[kind]} {min(missing)} in {dump.folder}.")


def rows(found: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """Yield the rows that a query of `statements.build` returns."""
    return (Row(subject, section, numbers, name) for subject, section, *numbers, name in found)


def check_rows(engine: Engine, dump: Dump) -> None:
    """Raise Failure if the numbers of rows are not those of the manifest."""
    for name in ("plays", *TABLES):
        paths = dump.plays() if name == "plays" else dump.table(name)
        stated = sum(each.rows for each in dump.files if each.path in {*paths})
        counted = f"SELECT COUNT(*) FROM {engine.dialect.source(dump.folder, paths)} AS s" if paths else ""  # noqa: S608 - our own SQL
        ((found,),) = engine.rows(counted) if paths else ((0,),)
        if found != stated:
            raise Failure(f"The files of {name} in {dump.folder} have {found:,} rows; the manifest states {stated:,}.")


def _sources(engine: Engine, dump: Dump, window: Window) -> Sources:
    def plays(paths: Sequence[str]) -> str:
        return (
            statements.plays(engine.dialect, engine.dialect.source(dump.folder, paths))
            if paths
            else statements.NO_PLAYS
        )

    tables: dict[str, Any] = {name: engine.dialect.source(dump.folder, dump.table(name)) for name in TABLES}
    return Sources(plays(dump.plays()), plays(dump.plays(window)), **tables)


def build(subject: Subject, window: Window, rows: Iterable[Row]) -> Recounted | None:
    """Return the figures of a subject, or None if it has plays but no name: a deleted track."""
    sections = by_section(rows)
    if not sections[statements.NAME]:
        return None
    (counts,) = sections[statements.COUNTS] or [Row(subject.id, statements.COUNTS, [0] * 8, "")]
    ever, people_ever, plays, people, plays_before, people_before, new, began = counts.numbers
    hours = Counter({row.numbers[0]: row.numbers[1] for row in sections[statements.BY_HOUR]})
    completed = Counter(
        {(percent, skipped): plays for _, _, (percent, skipped, plays, *_), _ in sections[statements.COMPLETION]}
    )
    skips = sum(number for (_, skipped), number in completed.items() if skipped)
    by_percent = [completed[percent, 0] + completed[percent, 1] for percent in range(PERCENT)]
    return Recounted(
        subject=subject,
        name=sections[statements.NAME][0].name,
        plays_total=ever,
        plays=plays,
        listeners_total=people_ever,
        listeners=people,
        plays_before=plays_before,
        listeners_before=people_before,
        plays_change=figures.change(plays, plays_before),
        listeners_change=figures.change(people, people_before),
        first_day=began // DAY if ever else None,
        without_duration=completed[statements.WITHOUT_DURATION, 0],
        without_length=completed[statements.WITHOUT_LENGTH, 0],
        listening=listening.of_numbers(window, by_percent, skips, plays, people, people - new),
        hours=Hours(window, listening.by_day([hours[hour] for hour in range(HOURS)])),
        days={row.numbers[0]: (row.numbers[1], row.numbers[2]) for row in sections[statements.BY_DAY]},
        tracks=_ranking(sections[statements.TRACKS]),
        albums=_ranking(sections[statements.ALBUMS], of_artist=True),
    )


def by_section(rows: Iterable[Row]) -> Mapping[int, list[Row]]:
    """Return the rows of one subject by section; empty for a section without rows."""
    sections: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        sections[row.section].append(row)
    return sections


def _ranking(rows: Sequence[Row], *, of_artist: bool = False) -> Ranking:
    ranked = [
        Ranked(item, name, ever, plays, people, OfArtist(*own) if of_artist else None)
        for _, _, (_, item, ever, plays, people, _, *own), name in rows
    ]
    return Ranking(ranked, rows[0].numbers[5] if rows else 0)
