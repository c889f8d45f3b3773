"""`musicsvc import`: import catalogs, follows, playlists and plays from files; list and undo imports."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from musicsvc.cli import import_run, imports, input_file, twins
from musicsvc.cli.options import FileCommand, Out, argument, flag, group, option
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

File = Annotated[Path, argument("FILE", "The file to import; - is stdin.")]
Pairs = Annotated[list[str] | None, argument("COLUMN=FIELD", "More columns to map, as in --map.")]
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
Playlist = Annotated[str | None, option("NAME", "The playlist of rows that name none.")]
Artist = Annotated[str | None, option("NAME", "The artist of tracks that name none.")]
Strict = Annotated[
    bool, flag("Import nothing unless every row and every cell of a known column can be imported.", "--strict")
]
DryRun = Annotated[bool, flag("Show the result without writing anything.", "--dry-run")]
Manager = Annotated[str | None, option("EMAIL", "The account that manages what is new.", "--user", "--manager")]
Owner = Annotated[str | None, option("EMAIL", "The owner of the playlists.", "--user", "--manager")]
Refused = Annotated[Path | None, option("FILE.csv", "Write refused rows to FILE.csv.", "--refused")]
Public = Annotated[bool, flag("Make new playlists public.", "--public")]
CreateMissing = Annotated[bool, flag("Create missing accounts.", "--create-missing")]
MakeTracks = Annotated[bool, flag("Create missing artists and tracks.", "--create-missing")]
Listener = Annotated[str | None, option("NAME", "The listener of plays that name none.")]


def _known(form: str | None) -> str | None:
    names = () if form is None else (*formats.FORMATS, *known.FORMATS)  # help texts do without these modules
    if form is not None and form not in names:
        raise typer.BadParameter(f"There is no format {form}. The formats are {', '.join(names)}.")
    return form


AnyFormat = Annotated[
    str | None,
    option("FORMAT", "As of other imports, or a service's, such as spotify.", "--format", callback=_known),
]


@dataclass(frozen=True, slots=True)
class Source:
    """The file to import, and how it is read."""

    file: File
    more: Pairs = None
    map_: Map = None
    form: AnyFormat = None
    sheet: Sheet = None
    encoding: Encoding = None
    blank: Blank = None


@dataclass(frozen=True, slots=True)
class TableSource(Source):
    """A file with a table, not in the format of another service."""

    form: Format = None

    def open(self, path: Path) -> records.Reader:
        return readers.open_file(path, form=self.form, sheet=self.sheet, encoding=self.encoding)


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether an import is only tried, and what becomes of refused rows."""

    dry_run: DryRun = False
    strict: Strict = False
    refused: Refused = None


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
def import_catalog(
    session: Session,
    source: TableSource,
    *,
    divide: Divide = None,
    manager: Manager = None,
    artist: Artist = None,
    date_format: Dates = None,
    trial: Trial,
) -> None:
    """Import artists, albums and tracks."""
    options = _options(source, trial, divide=divide or (), date_format=date_format, artist=artist, user=manager)
    warn = partial(twins.warn_of_catalog, options.chosen)
    try:
        import_run.import_file(session, options, source.open, catalog.Catalog, warn)
    except (typer.Exit, records.UnclearError):  # every row was refused, or none can be read
        mapped = bool(options.chosen.pairs)
        if source.file.is_file() and histories.is_history(source.file, source.form, mapped=mapped):
            raise Failure(f"{source.file} is a listening history. Run: musicsvc import plays FILE") from None
        raise


@app.command("follows")
def import_follows(
    session: Session, source: TableSource, *, create_missing: CreateMissing = False, trial: Trial
) -> None:
    """Import follows between accounts."""
    options = _options(source, trial, create_missing=create_missing)
    import_run.import_file(session, options, source.open, follows.Follows)


@app.command("playlists")
def import_playlists(
    session: Session,
    source: TableSource,
    *,
    divide: Divide = None,
    owner: Owner = None,
    playlist: Playlist = None,
    artist: Artist = None,
    public: Public = False,
    trial: Trial,
) -> None:
    """Import playlists from rows with one track each."""
    if owner is None:
        raise typer.BadParameter("Playlists need an owner. Add --user EMAIL.")
    of_rows = {"playlist": playlist, "artist": artist}
    options = _options(source, trial, divide=divide or (), user=owner, public=public, **of_rows)
    try:
        import_run.import_file(session, options, source.open, playlists.Playlists)
    except records.UnclearError as unclear:
        name = "NAME" if source.file == input_file.STDIN else shlex.quote(playlists.name_of(source.file.name))
        remedy = unclear.remedy.replace("--playlist NAME", f"--playlist {name}")
        raise records.UnclearError(unclear.what, remedy) from None


@app.command("plays")
def import_plays(
    session: Session,
    source: Source,
    *,
    divide: Divide = None,
    listener: Listener = None,
    create_missing: MakeTracks = False,
    manager: Manager = None,
    date_format: Dates = None,
    trial: Trial,
) -> None:
    """Import plays from tables or from exports of other services."""
    of_plays = {"date_format": date_format, "listener": listener, "create_missing": create_missing}
    options = _options(source, trial, divide=divide or (), user=manager, **of_plays)
    mapped = bool(options.chosen.pairs)

    def opened(path: Path) -> records.Reader:
        if listener is None and histories.is_history(path, source.form, mapped=mapped):
            raise records.UnclearError(plays.NO_LISTENER[0], "Add --listener NAME.")
        return histories.open_file(path, source.form, source.sheet, mapped=mapped, encoding=source.encoding)

    import_run.import_file(session, options, opened, plays.Plays, twins.warn_of_plays)


def _options(source: Source, trial: Trial, **others: Any) -> import_run.RunOptions:
    pairs, blank = (*(source.map_ or ()), *(source.more or ())), tuple(source.blank or ())
    chosen = runner.ImportOptions(pairs, blank, dry_run=trial.dry_run, strict=trial.strict, **others)
    return import_run.RunOptions(source.file, trial.refused, chosen)


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
