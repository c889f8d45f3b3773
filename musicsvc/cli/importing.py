"""`musicsvc import`: files of others' data into the store."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from musicsvc.cli import output, progress
from musicsvc.cli.output import JSON, Json
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.database import Store
    from musicsvc.store.importing.readers import Reader
    from musicsvc.store.importing.summary import Refusal, Summary

    Work = Callable[[Store, Reader, Callable[[Summary], None]], Summary]

app = typer.Typer(help="Import files: CSV (plain or gzip), JSON Lines, Parquet.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.", show_default=False)]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="COLUMN=FIELD", help="More pairs, as after --map.", show_default=False),
]
Format = Annotated[
    Literal["csv", "jsonl", "parquet"] | None,
    typer.Option("--format", help="What the file is, where its name does not tell.", show_default=False),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="COLUMN=FIELD",
        help="Which column fills which field; repeat it for more. COLUMN= leaves a column out.",
        show_default=False,
    ),
]
Blank = Annotated[
    list[str] | None,
    typer.Option(
        "--blank", metavar="TEXT", help="A cell that holds just this is empty, such as NA.", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and write nothing.")]
Manager = Annotated[
    str | None,
    typer.Option(metavar="EMAIL", help="The account that manages what is imported.", show_default=False),
]
Owner = Annotated[
    str | None,
    typer.Option("--manager", metavar="EMAIL", help="The account that owns the playlists.", show_default=False),
]
Public = Annotated[bool, typer.Option("--public", help="Show everybody the playlists that are made.")]
CreateMissing = Annotated[bool, typer.Option("--create-missing", help="Make accounts that are not there yet.")]
MakeTracks = Annotated[bool, typer.Option("--create-missing", help="Make artists and tracks that are not there yet.")]
Listener = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Whose plays these are, where the file does not say.", show_default=False),
]
History = Annotated[
    Literal[
        "csv",
        "jsonl",
        "parquet",
        "listenbrainz",
        "maloja",
        "spotify",
        "spotify-account",
        "lastfm",
        "lastfm-csv",
        "lastfm-to-csv",
        "librefm",
        "rockbox",
        "panoscrobbler",
        "spinitron",
    ]
    | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What the file is, where its content does not tell: csv, jsonl, parquet, listenbrainz, maloja, spotify,"
        " spotify-account, lastfm, lastfm-csv, lastfm-to-csv, librefm, rockbox, panoscrobbler or spinitron.",
        show_default=False,
    ),
]


@app.command()
def catalog(  # noqa: PLR0917 - a parameter for each option
    context: typer.Context,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    blank: Blank = None,
    manager: Manager = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import artists, albums and tracks. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import catalog as importing

    now = Session.of(context).clock.now()
    options = importing.Options((*(map_ or ()), *(more or ())), tuple(blank or ()), manager, dry_run)
    _import(
        context, file, form, json, lambda store, reader, told: importing.run(store, reader, options, now=now, told=told)
    )


@app.command()
def follows(  # noqa: PLR0917 - a parameter for each option
    context: typer.Context,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    blank: Blank = None,
    create_missing: CreateMissing = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import who follows whom. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import follows as importing

    now = Session.of(context).clock.now()
    options = importing.Options((*(map_ or ()), *(more or ())), tuple(blank or ()), create_missing, dry_run)
    _import(
        context, file, form, json, lambda store, reader, told: importing.run(store, reader, options, now=now, told=told)
    )


@app.command()
def playlists(  # noqa: PLR0917 - a parameter for each option
    context: typer.Context,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: Format = None,
    blank: Blank = None,
    owner: Owner = None,
    public: Public = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import playlists, a track a row. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import playlists as importing

    if owner is None:
        raise typer.BadParameter("Playlists need an owner. Say whose they are: --manager EMAIL.")
    now = Session.of(context).clock.now()
    options = importing.Options(owner, (*(map_ or ()), *(more or ())), tuple(blank or ()), public, dry_run)
    _import(
        context, file, form, json, lambda store, reader, told: importing.run(store, reader, options, now=now, told=told)
    )


@app.command()
def plays(  # noqa: PLR0917 - a parameter for each option
    context: typer.Context,
    file: File,
    more: Pairs = None,
    map_: Map = None,
    form: History = None,
    blank: Blank = None,
    listener: Listener = None,
    create_missing: MakeTracks = False,
    manager: Manager = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import plays, tables or what other services export. Refused rows are listed; a second run changes nothing."""
    from musicsvc.store.importing import histories
    from musicsvc.store.importing import plays as importing

    now = Session.of(context).clock.now()
    pairs = (*(map_ or ()), *(more or ()))
    options = importing.Options(pairs, tuple(blank or ()), listener, manager, create_missing, dry_run)
    _import(
        context,
        file,
        form,
        json,
        lambda store, reader, told: importing.run(store, reader, options, now=now, told=told),
        lambda: histories.open_file(file, form, mapped=bool(pairs)),
    )


def _import(
    context: typer.Context,
    file: Path,
    form: str | None,
    json: bool,
    work: "Work",
    open_file: "Callable[[], Reader] | None" = None,
) -> None:
    """Do the work on the file; refused rows are told as they come, the rest in the end."""
    from musicsvc.store.importing import readers

    session = Session.of(context)
    shown = 0
    opened = open_file() if open_file is not None else readers.open_file(file, form)
    with opened as reader, session.store() as store, progress.bar(session, file.name) as told:

        def hear(summary: "Summary") -> None:
            nonlocal shown
            told(reader.position, reader.size)
            if not json:
                _refuse(summary.refused[shown:])
                shown = len(summary.refused)

        try:
            summary = work(store, reader, hear)
        except Invalid as wrong:
            raise typer.BadParameter(next(iter(wrong.errors.values())), param_hint="--map") from None
    if json:
        output.value(_shown(file, summary))
    else:
        _draw(session, summary)


def _refuse(refused: "list[Refusal]") -> None:
    for line, reason in refused:
        typer.echo(f"line {line}: {output.plain(reason)}", err=True)


def _draw(session: Session, summary: "Summary") -> None:
    columns = ("new", "changed", "repeated", "refused")
    found = [
        {"kind": kind} | {name: getattr(counts, name) for name in columns} for kind, counts in summary.counts.items()
    ]
    output.rows(session, found, ("kind", *columns), json=False)
    from musicsvc.store.importing.summary import NOTES

    for note, sentence in NOTES.items():
        if count := summary.notes[note]:
            session.say(f"{count:,} {sentence}.")
    if summary.unused:
        session.say(f"Columns that were not used: {', '.join(map(output.plain, summary.unused))}.")
    read = f"{summary.rows:,} rows read, {len(summary.refused):,} of them refused."
    session.say(f"{read} Nothing was written (--dry-run)." if summary.dry_run else read)


def _shown(file: Path, summary: "Summary") -> JSON:
    return {
        "file": str(file),
        "dry_run": summary.dry_run,
        "rows": summary.rows,
        **{kind: asdict(counts) for kind, counts in summary.counts.items()},
        "refused": [{"line": line, "reason": reason} for line, reason in summary.refused],
        "notes": {note: count for note, count in summary.notes.items() if count},
        "unused_columns": summary.unused,
    }
