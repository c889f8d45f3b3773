"""`musicsvc import`: import catalogs, follows, playlists and plays from files; list and undo imports."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from musicsvc.cli import import_run, imports, twins
from musicsvc.cli.options import FileCommand, Out, group, option
from musicsvc.cli.output_file import STDOUT, echo_written, open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog import catalog, rows
from musicsvc.store.importing.files import encodings, formats, histories, readers, records
from musicsvc.store.importing.files.histories import known
from musicsvc.store.importing.people import follows, playlists
from musicsvc.store.importing.plays import plays

app = group(
    "import template --output catalog.xlsx",
    "import catalog songs.csv --map Work=track",
    "import plays history.json --listener ada --dry-run",
)
app.command("list")(imports.list_)
app.command()(imports.undo)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to import; - is stdin.", show_default=False)]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="COLUMN=FIELD", help="More columns to map, as in --map.", show_default=False),
]
Format = Annotated[
    Literal["csv", "jsonl", "parquet", "xlsx", "xls", "ods"] | None,
    option("FORMAT", "csv, jsonl, parquet, xlsx, xls or ods; default: as the file says.", "--format"),
]
Sheet = Annotated[str | None, option("NAME", "The sheet to read of a workbook; default: the first with a table.")]


def _named(encoding: str | None) -> str | None:
    try:
        return None if encoding is None else encodings.named(encoding)
    except Failure as unknown:
        raise typer.BadParameter(unknown.message) from None


Encoding = Annotated[
    str | None,
    option("NAME", "Of a text file, such as windows-1252; default: guessed.", "--encoding", callback=_named),
]
Map = Annotated[
    list[str] | None,
    option("COLUMN=FIELD", "Read FIELD from COLUMN; repeat for more. COLUMN= ignores a column.", "--map"),
]
Blank = Annotated[list[str] | None, option("TEXT", "Treat cells with this text, such as NA, as empty.", "--blank")]
Dates = Annotated[
    Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"] | None,
    option("FORMAT", "Of dates: YYYY-MM-DD, DD.MM.YYYY, DD/MM/YYYY or MM/DD/YYYY.", "--date-format"),
]
Divide = Annotated[
    list[str] | None,
    option("COLUMN=SIGNS", 'Divide names at signs, such as "Artist=& feat."; kept for later imports.', "--divide"),
]
Artist = Annotated[str | None, option("NAME", "The artist of tracks that name none.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Import nothing unless every row and every cell of a known column can be imported."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the result without writing anything.")]
Manager = Annotated[str | None, option("EMAIL", "The account that manages what is new.", "--user", "--manager")]
Owner = Annotated[str | None, option("EMAIL", "The owner of the playlists.", "--user", "--manager")]
Refused = Annotated[Path | None, option("FILE.csv", "Write refused rows to FILE.csv.", "--refused")]
Public = Annotated[bool, typer.Option("--public", help="Make new playlists public.")]
CreateMissing = Annotated[bool, typer.Option("--create-missing", help="Create missing accounts.")]
MakeTracks = Annotated[bool, typer.Option("--create-missing", help="Create missing artists and tracks.")]
Listener = Annotated[str | None, option("NAME", "The listener of plays that name none.")]


def _known(form: str | None) -> str | None:
    names = () if form is None else (*formats.FORMATS, *known.FORMATS)  # help texts do without these modules
    if form is not None and form not in names:
        raise typer.BadParameter(f"There is no format {form}. The formats are {', '.join(names)}.")
    return form


History = Annotated[
    str | None,
    option("FORMAT", "As of other imports, or a service's, such as spotify.", "--format", callback=_known),
]

TemplateFormat = Annotated[
    Literal["csv", "xlsx"] | None,
    option("FORMAT", "csv or xlsx; default: the suffix of the output file, or csv.", "--format"),
]
WIDTH = 18  # of a column of a template, in characters


@app.command(cls=FileCommand)
def template(session: Session, form: TemplateFormat = None, out: Out = STDOUT) -> None:
    """Write a catalog file to fill in: all fields, and two example rows."""
    found = {name: field.examples for name, field in rows.FIELDS.items() if field.examples is not None}
    chosen = form or ("xlsx" if out.suffix.lower() == ".xlsx" else "csv")
    if chosen == "xlsx" and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter(
            "A workbook cannot be shown in a terminal. Name an output file.", param_hint="--output"
        )
    with open_output(out) as file:
        (_write_csv if chosen == "csv" else _write_xlsx)(file, [[*found], *zip(*found.values(), strict=True)])
    echo_written(session, out)


@app.command("catalog")
def import_catalog(  # noqa: PLR0917 - a parameter for each option
    session: Session,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    sheet: Sheet = None,
    encoding: Encoding = None,
    blank: Blank = None,
    divide: Divide = None,
    manager: Manager = None,
    artist: Artist = None,
    date_format: Dates = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    refused: Refused = None,
) -> None:
    """Import artists, albums and tracks."""
    of_catalog = {"date_format": date_format, "artist": artist, "user": manager}
    options = _options(map_, more, blank, divide=divide or (), dry_run=dry_run, strict=strict, **of_catalog)
    opened = partial(readers.open_file, form=form, sheet=sheet, encoding=encoding)
    warn = partial(twins.warn_of_catalog, options)
    import_run.import_file(session, import_run.RunOptions(file, refused, options), opened, catalog.Catalog, warn)


@app.command("follows")
def import_follows(  # noqa: PLR0917 - a parameter for each option
    session: Session,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    sheet: Sheet = None,
    encoding: Encoding = None,
    blank: Blank = None,
    create_missing: CreateMissing = False,
    dry_run: DryRun = False,
    strict: Strict = False,
    refused: Refused = None,
) -> None:
    """Import follows between accounts."""
    options = _options(map_, more, blank, dry_run=dry_run, strict=strict, create_missing=create_missing)
    opened = partial(readers.open_file, form=form, sheet=sheet, encoding=encoding)
    import_run.import_file(session, import_run.RunOptions(file, refused, options), opened, follows.Follows)


@app.command("playlists")
def import_playlists(  # noqa: PLR0917 - a parameter for each option
    session: Session,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    sheet: Sheet = None,
    encoding: Encoding = None,
    blank: Blank = None,
    divide: Divide = None,
    owner: Owner = None,
    public: Public = False,
    dry_run: DryRun = False,
    strict: Strict = False,
    refused: Refused = None,
) -> None:
    """Import playlists from rows with one track each."""
    if owner is None:
        raise typer.BadParameter("Playlists need an owner. Add --user EMAIL.")
    of_playlists = {"divide": divide or (), "user": owner, "public": public}
    options = _options(map_, more, blank, dry_run=dry_run, strict=strict, **of_playlists)
    opened = partial(readers.open_file, form=form, sheet=sheet, encoding=encoding)
    import_run.import_file(session, import_run.RunOptions(file, refused, options), opened, playlists.Playlists)


@app.command("plays")
def import_plays(  # noqa: PLR0917 - a parameter for each option
    session: Session,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: History = None,
    sheet: Sheet = None,
    encoding: Encoding = None,
    blank: Blank = None,
    divide: Divide = None,
    listener: Listener = None,
    create_missing: MakeTracks = False,
    manager: Manager = None,
    date_format: Dates = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    refused: Refused = None,
) -> None:
    """Import plays from tables or from exports of other services."""
    of_plays = {"date_format": date_format, "listener": listener, "create_missing": create_missing}
    options = _options(map_, more, blank, dry_run=dry_run, strict=strict, divide=divide or (), user=manager, **of_plays)
    mapped = bool(options.pairs)

    def opened(path: Path) -> records.Reader:
        if listener is None and histories.is_history(path, form, mapped=mapped):
            raise records.UnclearError(plays.NO_LISTENER[0], "Add --listener NAME.")
        return histories.open_file(path, form, sheet, mapped=mapped, encoding=encoding)

    chosen = import_run.RunOptions(file, refused, options)
    import_run.import_file(session, chosen, opened, plays.Plays, twins.warn_of_plays)


def _options(
    mapped: list[str] | None, more: list[str] | None, blank: list[str] | None, **others: Any
) -> runner.ImportOptions:
    return runner.ImportOptions((*(mapped or ()), *(more or ())), tuple(blank or ()), **others)


def _write_csv(file: IO[bytes], rows: Sequence[Sequence[str]]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="")
    csv.writer(text).writerows(rows)
    text.flush()
    text.detach()


def _write_xlsx(file: IO[bytes], rows: Sequence[Sequence[str]]) -> None:
    """Write a workbook whose cells are texts, so that a UPC keeps its zeros and 3:45 is no time of day."""
    import xlsxwriter

    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Catalog")
        sheet.set_column(0, len(rows[0]) - 1, WIDTH, book.add_format({"num_format": "@"}))
        for at, row in enumerate(rows):
            for column, cell in enumerate(row):
                sheet.write_string(at, column, cell)
        sheet.freeze_panes(1, 0)
