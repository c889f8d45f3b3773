"""`musicsvc export`: the figures as files, without a server; the same bytes as the endpoints answer."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from musicsvc.cli import progress
from musicsvc.cli.command import group
from musicsvc.cli.options import PERIOD_HELP, option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Failure

if TYPE_CHECKING:
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

app = group(
    "Export figures as CSV, JSON or Parquet, or as a PDF report.",
    "export tracks --period 90-days --output tracks.csv",
    "export plays --user ada@example.test --format json",
    "export artists --output report.pdf",
)

Period = Annotated[Literal["7-days", "30-days", "90-days", "1-year"], option("PERIOD", PERIOD_HELP)]
Kind = Literal["csv", "json", "parquet", "pdf"]
FORMATS = get_args(Kind)
Format = Annotated[
    Kind | None,
    option("FORMAT", "csv, json, parquet or pdf; default: by the name of the output, or csv.", "--format"),
]
Artist = Annotated[int | None, option("ID", "Only tracks and albums with this artist.", min=1)]
User = Annotated[str | None, option("EMAIL", "Only artists managed by this account; default: all.")]
Out = Annotated[Path, option("FILE", "The output file; - is stdout.", "--output", "-o")]


@app.command()
def tracks(
    context: typer.Context,
    period: Period = "30-days",
    artist: Artist = None,
    user: User = None,
    form: Format = None,
    out: Out = STDOUT,
) -> None:
    """Export the figures of each track; as PDF the report on all of them."""
    _export(context, "tracks", period, artist, user, form, out)


@app.command()
def albums(
    context: typer.Context,
    period: Period = "30-days",
    artist: Artist = None,
    user: User = None,
    form: Format = None,
    out: Out = STDOUT,
) -> None:
    """Export the figures of each album; as PDF the report."""
    _export(context, "albums", period, artist, user, form, out)


@app.command()
def artists(
    context: typer.Context,
    period: Period = "30-days",
    artist: Artist = None,
    user: User = None,
    form: Format = None,
    out: Out = STDOUT,
) -> None:
    """Export the figures of each artist; as PDF the report."""
    _export(context, "artists", period, artist, user, form, out)


@app.command()
def plays(
    context: typer.Context,
    period: Period = "30-days",
    artist: Artist = None,
    user: User = None,
    form: Format = None,
    out: Out = STDOUT,
) -> None:
    """Export the plays of each track day by day; as PDF the report."""
    _export(context, "plays", period, artist, user, form, out)


def _export(
    context: typer.Context,
    type_: str,
    period: str,
    artist: int | None,
    user: str | None,
    form: str | None,
    out: Path,
) -> None:
    from musicsvc.store.accounts import users
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import window

    session = Session.from_context(context)
    now = session.clock.now()
    kind = _kind(form, out)
    with session.store() as store, progress.bar(session, f"{type_} as {kind}") as told, open_output(out) as file:
        begun = False

        def unit() -> "dict[str, Any] | None":
            nonlocal begun
            if begun:  # a unit may run again after a fault of the connection
                raise Failure("The database was lost while the export was written. Run it again.")
            scope = Scope(None if user is None else users.by_email(user).id, artist)
            days = window(period, now)
            if kind == "pdf":
                return _report(scope, days, now)
            begun = True
            _write(kind, type_, scope, days, now, file, told)
            return None

        content = store.read(unit).result()
        if content is not None:
            from musicsvc.reports import pdf

            file.write(pdf.report(content))
    if out != STDOUT:
        session.echo(f"Written to {out}.")


def _kind(form: str | None, out: Path) -> str:
    """Return the format: the one given, else the ending of the file's name, else csv. Wrong usage where none fits."""
    ending = out.suffix.removeprefix(".").lower()
    kind = form or ending or "csv"
    if kind not in FORMATS:
        raise typer.BadParameter(
            f"{out.name} ends in {out.suffix}, which is not a format. The formats are {', '.join(FORMATS)};"
            " --format FORMAT writes one of them under any name.",
            param_hint="--output",
        )
    if kind in {"parquet", "pdf"} and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter("This is no text for a terminal; name a file.", param_hint="--output")
    return kind


def _report(scope: "Scope", days: "Window", now: int) -> dict[str, Any]:
    from musicsvc.server.shapes import exports as shapes
    from musicsvc.store.insights import overview

    return shapes.printed(overview.build(scope, days, albums_and_artists=True), now)


def _write(
    kind: str,
    type_: str,
    scope: "Scope",
    days: "Window",
    now: int,
    file: IO[bytes],
    told: Callable[[float, float], None],
) -> None:
    """Write the rows as they are read, in one snapshot."""
    from musicsvc.reports import tables
    from musicsvc.server.shapes import exports as shapes
    from musicsvc.store.insights import export_rows

    columns = export_rows.COLUMNS[type_]
    with export_rows.cells(type_, scope, days) as cells:
        rows = _counted(cells, export_rows.expected(type_, scope), told)
        if kind == "parquet":
            from musicsvc.reports import parquet

            parquet.write(columns, rows, file)
        elif kind == "json":
            file.writelines(tables.json(shapes.head(type_, days, now), columns, rows))
        else:
            file.writelines(tables.csv(columns, rows))


def _counted(rows: Iterable[Any], total: int, told: Callable[[float, float], None]) -> Iterator[Any]:
    for done, row in enumerate(rows, 1):
        if done % 1000 == 0:
            told(done, max(done, total))
        yield row
