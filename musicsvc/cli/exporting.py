"""`musicsvc export`: write the same export files as the API, without a running server."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musicsvc.cli import progress
from musicsvc.cli.command import group
from musicsvc.cli.options import PERIOD_HELP, option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.reports.formats import FORMATS
from musicsvc.reports.formats import Format as FileFormat

if TYPE_CHECKING:
    from musicsvc.reports.report import Report
    from musicsvc.reports.tables import Table
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

app = group(
    "Export figures as CSV, JSON, Excel or Parquet, or as a PDF report.",
    "export tracks --period 90-days --output tracks.xlsx",
    "export plays --user ada@example.test --format json",
    "export artists --output report.pdf",
)

Period = Annotated[Literal["7-days", "30-days", "90-days", "1-year"], option("PERIOD", PERIOD_HELP)]
Format = Annotated[
    str | None,
    option("FORMAT", f"{', '.join(FORMATS)}; default: by the name of the output, or csv.", "--format"),
]
Artist = Annotated[int | None, option("ID", "Only tracks and albums with this artist.", min=1)]
User = Annotated[str | None, option("EMAIL", "Only artists managed by this account; default: all.")]
Out = Annotated[Path, option("FILE", "The output file; - is stdout.", "--output", "-o")]


TYPES = {
    "tracks": "Export the figures of each track; as PDF the report on all of them.",
    "albums": "Export the figures of each album; as PDF the report.",
    "artists": "Export the figures of each artist; as PDF the report.",
    "plays": "Export the plays of each track day by day; as PDF the report.",
}


def _add_command(type_: str, help_text: str) -> None:
    @app.command(type_, help=help_text)
    def export(
        context: typer.Context,
        period: Period = "30-days",
        artist: Artist = None,
        user: User = None,
        form: Format = None,
        out: Out = STDOUT,
    ) -> None:
        from musicsvc.store.accounts import users
        from musicsvc.store.insights.scopes import Scope
        from musicsvc.store.plays.periods import window

        session = Session.from_context(context)
        now = session.clock.now()
        chosen = _format(form, out)
        title = f"{type_} as {chosen.id}"
        bar = progress.bar(session, title, hidden=out == STDOUT and sys.stdout.isatty())
        with session.store() as store, bar as on_progress, open_output(out) as file:
            begun = False

            def unit() -> "Report | None":
                nonlocal begun
                if begun:  # called again after a connection error
                    raise Failure("The database connection was lost during the export. Run it again.")
                scope = Scope(None if user is None else users.by_email(user).id, artist)
                days = window(period, now)
                if chosen.write_table is None:
                    return _read_report(scope, days, now)
                begun = True
                with _table(type_, scope, days, now, on_progress) as table:
                    file.writelines(chosen.write_table(table))
                return None

            report = store.read(unit).result()
            if report is not None and chosen.write_report is not None:
                file.write(chosen.write_report(report))
        if out != STDOUT:
            session.echo(f"Written to {out}.")


for _type, _help in TYPES.items():
    _add_command(_type, _help)


def _format(form: str | None, out: Path) -> FileFormat:
    """Return the file format: `form`, or the suffix of `out`, or CSV. Raises BadParameter if the format is unknown."""
    if form is not None and form not in FORMATS:
        names = ", ".join(map(repr, FORMATS))
        raise typer.BadParameter(f"{form!r} is not one of {names}.", param_hint="--format")
    chosen = FORMATS.get(form or out.suffix.removeprefix(".").lower() or "csv")
    if chosen is None:
        raise typer.BadParameter(
            f"{out.name} ends in {out.suffix}, which is not a format. The formats are {', '.join(FORMATS)}."
            " To use another file name, set the format with --format.",
            param_hint="--output",
        )
    if not chosen.text and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter(
            f"{chosen.name} cannot be shown in a terminal. Name an output file.", param_hint="--output"
        )
    return chosen


def _read_report(scope: "Scope", days: "Window", now: int) -> "Report":
    from musicsvc.server.shapes import exports as shapes
    from musicsvc.store.insights import overview

    return shapes.printed(overview.build(scope, days, albums_and_artists=True), now)


@contextmanager
def _table(
    type_: str, scope: "Scope", days: "Window", now: int, on_progress: Callable[[float, float], None]
) -> "Iterator[Table]":
    """Open the export as a table for the `with` block. The rows are read from one snapshot while they are written."""
    from musicsvc.reports.tables import Table
    from musicsvc.server.shapes import exports as shapes
    from musicsvc.store.insights import export_rows

    with export_rows.cells(type_, scope, days) as cells:
        rows = _counted(cells, export_rows.expected(type_, scope), on_progress)
        yield Table(export_rows.COLUMNS[type_], rows, shapes.head(type_, days, now))


def _counted(rows: Iterable[Any], total: int, on_progress: Callable[[float, float], None]) -> Iterator[Any]:
    for done, row in enumerate(rows, 1):
        if done % 1000 == 0:
            on_progress(done, max(done, total))
        yield row
