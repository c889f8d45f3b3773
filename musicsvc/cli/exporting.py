"""`musicsvc export`: write the same export files as the API, without a running server."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musicsvc.cli import periods, progress
from musicsvc.cli.command import group
from musicsvc.cli.options import option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.reports.formats import FORMATS
from musicsvc.reports.formats import Format as FileFormat

if TYPE_CHECKING:
    from musicsvc.reports.report import Report
    from musicsvc.reports.tables import Table
    from musicsvc.store.insights.overview import Overview
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

app = group(
    "Export figures as CSV, JSON, Excel or Parquet, or as a PDF report.",
    "export tracks --period 90-days --output tracks.xlsx",
    "export artists --period last-month --output artists.csv",
    "export albums --from 2026-01-10 --to 2026-02-09",
    "export plays --user ada@example.test --format json",
    "export report --period 2026-10 --paper letter --output report.pdf",
)

Format = Annotated[
    str | None,
    option("FORMAT", f"{', '.join(FORMATS)}; default: by the name of the output, or csv.", "--format"),
]
Artist = Annotated[int | None, option("ID", "Only tracks and albums with this artist.", min=1)]
User = Annotated[str | None, option("EMAIL", "Only artists managed by this account; default: all.")]
Out = Annotated[Path, option("FILE", "The output file; - is stdout.", "--output", "-o")]


Paper = Annotated[Literal["a4", "letter"], option("PAPER", "a4 or letter.")]
ReportFormat = Annotated[
    str | None, option("FORMAT", "pdf or json; default: by the name of the output, or pdf.", "--format")
]

REPORT_FORMATS = {name: FORMATS[name] for name in ("pdf", "json")}
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
        period: periods.Period = None,
        first: periods.First = None,
        last: periods.Last = None,
        artist: Artist = None,
        user: User = None,
        form: Format = None,
        out: Out = STDOUT,
    ) -> None:
        from musicsvc.server.shapes import exports as shapes
        from musicsvc.store.insights import overview
        from musicsvc.store.plays.history import from_first_day

        session, chosen = Session.from_context(context), _format(form, out, FORMATS, "csv")
        window = periods.choose(period, first, last, now := session.clock.now())
        bar = progress.bar(session, f"{type_} as {chosen.id}", hidden=out == STDOUT and sys.stdout.isatty())
        with session.store() as store, bar as on_progress, open_output(out) as file:
            begun = False

            def unit() -> "Report | None":
                nonlocal begun
                if begun:  # called again after a connection error
                    raise Failure("The database connection was lost during the export. Run it again.")
                scope, days = _scope(user, artist), from_first_day(window)
                if chosen.write_table is None:
                    return shapes.printed(overview.build(scope, days, for_print=True), now)
                begun = True
                with _table(type_, scope, days, now, on_progress) as table:
                    file.writelines(chosen.write_table(table))
                return None

            report = store.read(unit).result()
            if report is not None and chosen.write_report is not None:
                file.write(chosen.write_report(report))
        _echo_written(session, out)
        if report is not None:
            session.echo("musicsvc export report writes this report too, also for Letter paper or as JSON.")


@app.command("report")
def export_report(
    context: typer.Context,
    period: periods.Period = None,
    first: periods.First = None,
    last: periods.Last = None,
    *,
    paper: Paper = "a4",
    artist: Artist = None,
    user: User = None,
    form: ReportFormat = None,
    out: Out = STDOUT,
) -> None:
    """Write the report: key figures, charts, the most played, as PDF to send on or as JSON."""
    from musicsvc.server.shapes import exports as shapes
    from musicsvc.store.insights import overview
    from musicsvc.store.plays.history import from_first_day

    session = Session.from_context(context)
    now = session.clock.now()
    chosen = _format(form, out, REPORT_FORMATS, "pdf")
    window = periods.choose(period, first, last, now)
    with session.store() as store, open_output(out) as file:
        found = store.read(
            lambda: overview.build(_scope(user, artist), from_first_day(window), for_print=True)
        ).result()
        if chosen.id == "pdf":
            from musicsvc.reports import pdf

            file.write(pdf.render(shapes.printed(found, now), paper))
        else:
            file.write(_as_json(found, now))
    _echo_written(session, out)


for _type, _help in TYPES.items():
    _add_command(_type, _help)


def _echo_written(session: Session, out: Path) -> None:
    if out != STDOUT:
        session.echo(f"Written to {out}.")


def _scope(user: str | None, artist: int | None) -> "Scope":
    from musicsvc.store.accounts import users
    from musicsvc.store.insights.scopes import Scope

    return Scope(None if user is None else users.by_email(user).id, artist)


def _format(form: str | None, out: Path, formats: Mapping[str, FileFormat], default: str) -> FileFormat:
    """Return the file format: `form`, or the suffix of `out`, or `default`. Raises BadParameter if it is unknown."""
    if form is not None and form not in formats:
        names = ", ".join(map(repr, formats))
        raise typer.BadParameter(f"{form!r} is not one of {names}.", param_hint="--format")
    chosen = formats.get(form or out.suffix.removeprefix(".").lower() or default)
    if chosen is None:
        raise typer.BadParameter(
            f"{out.name} ends in {out.suffix}, which is not a format. The formats are {', '.join(formats)}."
            " To use another file name, set the format with --format.",
            param_hint="--output",
        )
    if not chosen.text and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter(
            f"{chosen.name} cannot be shown in a terminal. Name an output file.", param_hint="--output"
        )
    return chosen


def _as_json(found: "Overview", now: int) -> bytes:
    """Return the response of the API for a report with charts."""
    import orjson

    from musicsvc.server.shapes import exports as shapes
    from musicsvc.server.shapes.envelope import success

    return orjson.dumps(success(shapes.report(found, now, charts=True)))


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
