"""`musicsvc insights`: show plays, listeners and growth, and explain how they are calculated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from musicsvc.cli import explaining, listening, output, periods
from musicsvc.cli.options import group, row
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.server.handlers import insights
from musicsvc.server.shapes import explaining as explanation_shapes
from musicsvc.server.shapes import insights as shapes
from musicsvc.store.insights import charts, figures
from musicsvc.store.plays import counting, history, subjects
from musicsvc.store.plays.periods import Window
from musicsvc.store.recounting import explain as explanations

Growth = Callable[[float | None], str]

app = group(
    "insights show artist 7 --period 1-year",
    "insights explain track 7 --json",
    "insights release 3 --against 5 --days 14",
)
app.command()(listening.release)

WIDEST = 60
COLUMNS = ("id", "name", "plays", "listeners", "all time")


class Kind(StrEnum):
    TRACK = "track"
    ALBUM = "album"
    ARTIST = "artist"


KindOf = Annotated[Kind, typer.Argument(metavar="KIND", help="track, album or artist.")]
Id = Annotated[int, row("")]


@app.command()
def show(session: Session, kind: KindOf, number: Id, period: periods.PeriodOptions) -> None:
    """Show figures equal to those of the API, and the plays of each day."""
    window = period.window(session.now)

    def unit() -> tuple[str, Growth, JSON, charts.Chart]:
        subject, days = _subject(kind, number), history.adapt(window)
        name = figures.name(subject)  # first: it reports an unknown id
        data = insights.data_of(subject, days) | listening.answers(subject, days)
        return name, _growth(days, data["growth"]["first_play"]), data, charts.build(subject, days)

    name, growth, data, chart = session.read(unit)
    if session.json:
        output.print_json({"kind": kind.value, "id": number, "name": name} | data)
        return
    days = listening.draw([point.plays for point in chart.points], WIDEST, sys.stdout.encoding)
    lines = _lines(data, growth) | listening.lines(data) | {"plays by day": days}
    output.print_record(session, {kind.value: f"{number}: {name}"} | lines)
    typer.echo("\nhours of the week")
    listening.print_hours(session, data["hours"]["hours"])
    for title in ("tracks", "top_tracks", "top_albums"):
        if data.get(title):
            typer.echo(f"\n{title.replace('_', ' ')}")
            output.print_table(session, [_ranked(row) for row in data[title]], COLUMNS, cut="name")


@app.command()
def explain(session: Session, kind: KindOf, number: Id, period: periods.PeriodOptions) -> None:
    """Recount the figures from the stored plays step by step, and compare them with the API."""
    now = session.now
    window = period.window(now)

    def unit() -> tuple[str, explanations.Explanation]:
        subject = _subject(kind, number)
        return figures.name(subject), explanations.build(subject, history.adapt(window), now)

    name, found = session.read(unit)
    if found.differences:  # perhaps only because plays are not counted yet
        name, found = session.write(partial(counting.alone, unit))
    if session.json:
        output.print_json(explanation_shapes.explanation(_subject(kind, number), name, found))
    else:
        explaining.print_page(session, f"{kind} {number}: {name}", found)


def _subject(kind: Kind, number: int) -> subjects.Subject:
    """Return a reference to the track, album or artist (`kind`) with this id, which need not exist in the database."""
    return subjects.Subject(subjects.KINDS[kind.value], number)


def _growth(window: Window, first_play: str | None) -> Growth:
    """Return a function that formats growth in percent, or None, as the text after a figure."""
    before, first = window.before.label, shapes.first_plays(window, first_play)
    if not before:
        return lambda _: ""
    if first is not None:
        return lambda _: f" ({first})"
    return lambda change: " (nothing before)" if change is None else f" ({change:+,.1f} % vs {before})"


def _lines(data: JSON, growth: Growth) -> JSON:
    """Map the title of each figure, such as `plays`, to its line of text. `data`: that of an insights response."""
    days = data["period"]
    lines = {"period": f"{days['name']}: {days['start']} to {days['end']}"} | listening.figures(
        figures.FIGURES, data, growth
    )
    more = {key: data[key] for key in ("followers", "tracks_count", "albums_count") if key in data}
    return lines | {key.removesuffix("_count"): f"{count:,}" for key, count in more.items()}


def _ranked(row: JSON) -> JSON:
    return {
        "id": row["id"],
        "name": row["name"],
        "plays": _plays(row, "period"),
        "listeners": f"{row['listeners']['unique']:,}",
        "all time": _plays(row, "total"),
    }


def _plays(row: JSON, name: str) -> str:
    """Return the plays of a row as text; if only some are the artist's, as `2,252 of 2,566`."""
    found = row["plays"]
    own = found.get("of_artist", found)[name]
    return f"{own:,}" if own == found[name] else f"{own:,} of {found[name]:,}"
