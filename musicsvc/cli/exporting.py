"""`musicsvc export`: write the same export files as the API, without a running server."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from musicsvc.cli import meta_files, periods, progress, reporting, verifying
from musicsvc.cli.options import FileCommand, Out, flag, group, option, row_option
from musicsvc.cli.output_file import STDOUT, echo_written, folder_of, open_output
from musicsvc.cli.session import Session, once
from musicsvc.reports import tables
from musicsvc.reports.formats import FORMATS
from musicsvc.reports.formats import Format as FileFormat
from musicsvc.server.shapes import exports as shapes
from musicsvc.store.insights import export_rows, scopes
from musicsvc.store.insights.listening import DEFAULT_DAYS, MOST_DAYS
from musicsvc.store.plays import history
from musicsvc.store.plays.periods import Window

app = group(
    "export tracks --period last-month --output tracks.xlsx",
    "export plays --from 2026-01-10 --to 2026-02-09 --user ada@example.test",
    "export report --period 2026-10 --paper letter --output report.pdf",
)

Format = Annotated[
    str | None,
    option("FORMAT", f"{', '.join(FORMATS)}; default: the suffix of the output file, or csv.", "--format"),
]
Artist = Annotated[int | None, row_option("artist", "Only tracks and albums with this artist.", "--artist")]
Bom = Annotated[bool, flag("Begin a CSV file with a byte order mark, as Excel needs it.", "--bom")]
User = Annotated[str | None, option("EMAIL", "Only artists managed by this account; default: all.")]
Paper = Annotated[Literal["a4", "letter"] | None, option("PAPER", "a4 or letter; only for PDF. Default: a4.")]
ReportFormat = Annotated[
    str | None,
    option("FORMAT", f"{', '.join(reporting.FORMATS)}; default: the suffix of the output file, or pdf.", "--format"),
]
Releases = Annotated[
    list[int] | None,
    row_option(
        "album",
        "Compare this album by the days since its release; may be repeated. Default: the newest albums.",
        "--release",
        metavar="ALBUM",
    ),
]
Days = Annotated[
    int,
    option("DAYS", "The number of days since the release to compare.", "--release-days", min=1, max=MOST_DAYS),
]

TYPES = {
    "tracks": "Export the figures of each track; --format pdf exports the report.",
    "albums": "Export the figures of each album; --format pdf exports the report.",
    "artists": "Export the figures of each artist; --format pdf exports the report.",
    "plays": "Export the plays of each track by day; --format pdf exports the report.",
}


def _add_command(type_: str, help_text: str) -> None:
    @app.command(type_, cls=FileCommand, help=help_text)
    def export(
        session: Session,
        period: periods.PeriodOptions,
        artist: Artist = None,
        user: User = None,
        form: Format = None,
        *,
        bom: Bom = False,
        out: Out = STDOUT,
    ) -> None:
        chosen = _format(form, out, FORMATS, "csv", bom=bom)
        window = period.window(now := session.now)
        if chosen.write_table is None:
            reporting.write(session, reporting.Wanted(user, artist, window, now), chosen.id, "a4", out)
            echo_written(session, out)
            session.echo("musicsvc export report writes this report too, also for Letter paper or as JSON.")
            return
        write = chosen.write_table
        bar = progress.bar(session, f"{type_} as {chosen.id}", hidden=out == STDOUT and sys.stdout.isatty())
        with session.store() as store, bar as on_progress, open_output(out) as file:

            @once
            def unit() -> Mapping[str, object]:
                scope, days = reporting.scope(user, artist), history.adapt(window)
                file.write(BOM_UTF8 * bom)
                with _table(type_, scope, days, now, chosen, on_progress) as table:
                    file.writelines(write(replace(table, folder=folder_of(out))))
                return table.verification()

            verification = store.read(unit).result()
        meta_files.write(out, chosen.id, verification)
        echo_written(session, out)


@app.command("report", cls=FileCommand)
def export_report(
    session: Session,
    period: periods.PeriodOptions,
    *,
    paper: Paper = None,
    artist: Artist = None,
    user: User = None,
    release: Releases = None,
    days: Days = DEFAULT_DAYS,
    form: ReportFormat = None,
    bom: Bom = False,
    out: Out = STDOUT,
) -> None:
    """Write the report with charts as PDF, or as Excel, CSV or JSON."""
    chosen, now = _format(form, out, reporting.FORMATS, "pdf", bom=bom), session.now
    if paper is not None and chosen.id != "pdf":
        raise typer.BadParameter(f"{chosen.name} has no pages; only a PDF has.", param_hint="--paper")
    window = period.window(now)
    albums = reporting.albums(release)
    wanted = reporting.Wanted(user, artist, window, now, albums, days, bom)
    reporting.write(session, wanted, chosen.id, paper or "a4", out)
    echo_written(session, out)


app.command()(verifying.verify)


for _type, _help in TYPES.items():
    _add_command(_type, _help)


def _format(form: str | None, out: Path, formats: Mapping[str, FileFormat], default: str, *, bom: bool) -> FileFormat:
    """Return the file format that `form` names, else the suffix of `out`, else `default`.

    Raises BadParameter if the format is unknown, if a binary file would be written to a terminal, or for `bom` of a
    format other than CSV.
    """
    if form is not None and form.lower() not in formats:
        names = ", ".join(map(repr, formats))
        raise typer.BadParameter(f"{form!r} is not one of {names}.", param_hint="--format")
    chosen = formats.get((form or out.suffix.removeprefix(".") or default).lower())
    if chosen is None:
        raise typer.BadParameter(
            f"{out.name} ends in {out.suffix}, which is not a format. The formats are {', '.join(formats)}."
            " To use another file name, set the format with --format.",
            param_hint="--output",
        )
    if bom and chosen.id != "csv":
        raise typer.BadParameter(f"{chosen.name} has no byte order mark; only CSV has.", param_hint="--bom")
    if not chosen.text and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter(
            f"{chosen.name} cannot be shown in a terminal. Name an output file.", param_hint="--output"
        )
    return chosen


@contextmanager
def _table(
    type_: str,
    scope: scopes.Scope,
    days: Window,
    now: int,
    form: FileFormat,
    on_progress: Callable[[float, float], None],
) -> Iterator[tables.Table]:
    """Open the export as a table for the `with` block. The rows are read from one snapshot while they are written."""
    with export_rows.cells(type_, scope, days) as cells:
        rows = progress.counted(cells, export_rows.expected(type_, scope), on_progress)
        yield shapes.table(type_, scope, days, now, rows, form)
