"""`musicsvc plays recount --from DIR`: recount figures from dumped plays, and compare them with the service's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsvc.cli import output, periods
from musicsvc.cli.insights import Kind
from musicsvc.cli.options import LARGEST_ID, flag, option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.errors import NotFound
from musicsvc.server.handlers import insights
from musicsvc.server.shapes import insights as shapes
from musicsvc.server.shapes import listening as of_listening
from musicsvc.store.insights import charts, figures, scopes
from musicsvc.store.insights.listening import listening
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import ALL, Window
from musicsvc.store.recounting import compare, dump, engines, results
from musicsvc.wording import quantity

# Figures of the API that plays do not tell.
NOT_PLAYS = {"likes", "reposts", "followers", "engagement"}
NAMES = {"ids": "id"}  # of options that are not those of their fields


class EngineName(StrEnum):
    DUCKDB = "duckdb"
    SPARK = "spark"
    CLICKHOUSE = "clickhouse"


Engine = Annotated[
    EngineName | None, option("ENGINE", "duckdb (default) or clickhouse, both in this process, or spark.", "--engine")
]
Master = Annotated[
    str | None, option("URL", "The Spark master, spark://HOST:PORT; by default this machine.", "--master")
]
KindOf = Annotated[Kind | None, option("KIND", "Figures of each track, album or artist.", "--kind")]
Ids = Annotated[
    list[int] | None, option("ID", "Only the one with this id; may be repeated.", "--id", min=1, max=LARGEST_ID)
]
Compare = Annotated[
    bool, flag("List differences from the figures of this database; exit with 1 if there are any.", "--compare")
]


@dataclass(frozen=True, slots=True)
class Options:
    """The options that go with `--from`. Without `ids`, all tracks, albums or artists are recounted."""

    engine: Engine = None
    master: Master = None
    kind: KindOf = None
    ids: Ids = None
    period: periods.Period = None
    since: periods.Since = None
    until: periods.Until = None
    compare: Compare = False

    @property
    def given(self) -> list[str]:
        """The names of the options that were given."""
        return [f"--{NAMES.get(each.name, each.name)}" for each in fields(self) if getattr(self, each.name)]


def run(session: Session, folder: Path, options: Options) -> None:
    """Recount the figures of the options from the dump in the folder; print them, or their differences."""
    if options.kind is None:
        raise typer.BadParameter("Say of what: track, album or artist.", param_hint="--kind")
    opened = dump.load(folder)
    window = _window(opened, options)
    with _engine(options) as engine:
        results.check_rows(engine, opened)
        found = results.run(engine, opened, subjects.KINDS[options.kind.value], options.ids or [], window)
        if options.compare:
            _compare(session, opened, window, options, found)
            return
        if opened.complete_from > max(0, window.first):
            session.echo("Single plays of the first days of the period were deleted; the figures are too low.")
        if not session.json:
            output.print_table(session, [_row(each) for each in found], COLUMNS, cut="name")
        elif len(options.ids or ()) == 1:
            output.print_json(*map(shape, found))
        else:
            output.print_json_array(map(shape, found))


def _window(dumped: dump.Dump, options: Options) -> Window:
    """Return the window that the options choose, as of the time of the dump."""
    names = "--since", "--until"
    window = periods.choose(options.period, options.since, options.until, dumped.dumped_at, names)
    if window.name == ALL and dumped.first_day is not None:
        window = window._replace(first=min(dumped.first_day, window.end - 1))
    earlier = window.compared_with
    return window._replace(compared_with=earlier and earlier.countable(dumped.complete_from))


def _engine(options: Options) -> AbstractContextManager[engines.Engine]:
    if options.engine == EngineName.SPARK:
        return engines.spark(options.master)
    if options.master:
        raise typer.BadParameter("Use it with --engine spark.", param_hint="--master")
    return engines.clickhouse() if options.engine == EngineName.CLICKHOUSE else engines.duckdb()


COLUMNS = ("id", "name", "plays", "growth", "listeners", "new", "skips", "heard", "all time")


def _row(found: results.Recounted) -> JSON:
    def percent(number: float | None, form: str) -> str | None:
        return None if number is None else f"{number:{form}} %"

    return {
        "id": found.subject.id,
        "name": found.name,
        "plays": f"{found.plays:,}",
        "growth": shapes.first_plays(found.listening.window, found.first_play) or percent(found.plays_change, "+,.1f"),
        "listeners": f"{found.listeners:,}",
        "new": f"{found.listening.new_listeners:,}",
        "skips": f"{found.listening.skips:,}",
        "heard": percent(found.listening.mean, ",.1f"),
        "all time": f"{found.plays_total:,}",
    }


def shape(found: results.Recounted) -> JSON:
    """Return figures as JSON with the keys of the API, without those that plays do not tell."""
    window = found.listening.window
    points = [charts.Point(*found.days.get(day, (0, 0)), 0, 0) for day in window.numbers]
    chart = charts.Chart(window, points, charts.Point(found.plays, found.listeners, 0, 0))
    kind = found.subject.kind
    data: JSON = {"kind": figures.noun(found.subject), "id": found.subject.id, "name": found.name}
    data |= shapes.nested([each for each in figures.IN_DATA if each.key not in NOT_PLAYS], found)
    data |= {"period": shapes.period(window)}
    if kind == subjects.ALBUM:
        data |= {"tracks": [shapes.ranked(row) for row in found.tracks.rows]}
    elif kind == subjects.ARTIST:
        data |= {
            "top_tracks": [shapes.ranked(row) for row in found.tracks.rows],
            "top_albums": [shapes.ranked(row) for row in found.albums.rows],
            "tracks_count": found.tracks.size,
            "albums_count": found.albums.size,
        }
    data |= {"listening": of_listening.listening(found.listening), "hours": of_listening.hours(found.hours)}
    data |= {"charts": shapes.chart(chart)}
    return {each: _of_plays(some) for each, some in data.items()}


def _of_plays(data: Any) -> Any:
    """Return JSON without the figures that plays do not tell."""
    if isinstance(data, dict):
        return {key: _of_plays(value) for key, value in data.items() if key not in NOT_PLAYS}
    return [_of_plays(each) for each in data] if isinstance(data, list) else data


def served_figures(subject: subjects.Subject, window: Window) -> JSON:
    """Return the same figures from the counts of this database, or nothing if it does not have the subject."""
    try:
        data: JSON = {"kind": figures.noun(subject), "id": subject.id, "name": figures.name(subject)}
    except NotFound:
        return {}
    heard, hours = listening.build(subject, window)
    data |= insights.data_of(subject, window)
    data |= {"listening": of_listening.listening(heard), "hours": of_listening.hours(hours)}
    data |= {"charts": shapes.chart(charts.build(subject, window))}
    return {each: _of_plays(some) for each, some in data.items() if each not in NOT_PLAYS}


def _compare(
    session: Session, dumped: dump.Dump, window: Window, options: Options, found: Iterator[results.Recounted]
) -> None:
    """Print every difference between the recounted and the service's own figures; exit with 1 if there is any."""
    count, differences, noun = 0, list[compare.Difference](), str(options.kind)
    kind = subjects.KINDS[noun]
    with session.store() as store:
        which = store.read(partial(compare.comparable, dumped, window)).result()
        missing = set() if options.ids else {*store.read(partial(scopes.Scope().ids, kind)).result()}
        for each in found:
            served = store.read(partial(served_figures, each.subject, window)).result()
            differences += compare.differences(each.subject, served, shape(each), which)
            missing.discard(each.subject.id)
            count += 1
        for subject in (subjects.Subject(kind, each) for each in sorted(missing)):
            served = store.read(partial(served_figures, subject, window)).result()
            differences += compare.differences(subject, served, {}, which)
    rows = [each._asdict() for each in differences]
    explained = compare.explain(dumped, which)
    if session.json:
        output.print_json({"subjects": count, "differences": rows, "not_compared": explained})
    elif rows:
        output.print_table(session, rows, rows[0])
    for line in explained:
        session.echo(line)
    session.echo(f"{quantity(len(rows), 'difference')} in the figures of {quantity(count, noun)}.")
    if rows:
        raise typer.Exit(1)
