"""`musicsvc import`: files of others' data into the store."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from musicsvc.cli import import_run
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.errors import Failure

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
Refused = Annotated[
    Path | None,
    typer.Option(
        "--refused", metavar="FILE.csv", help="Write the refused rows here: line, reason, cells.", show_default=False
    ),
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
    refused: Refused = None,
    json: AsJson = False,
) -> None:
    """Import artists, albums and tracks. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import catalog as importing
    from musicsvc.store.importing import readers

    session = Session.from_context(context)
    now = session.clock.now()
    options = importing.Options((*(map_ or ()), *(more or ())), tuple(blank or ()), manager, dry_run)
    import_run.run(
        session,
        import_run.Options(file, json, refused),
        lambda: readers.open_file(file, form),
        lambda store, reader, told: importing.run(store, reader, options, now=now, told=told),
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
    refused: Refused = None,
    json: AsJson = False,
) -> None:
    """Import who follows whom. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import follows as importing
    from musicsvc.store.importing import readers

    session = Session.from_context(context)
    now = session.clock.now()
    options = importing.Options((*(map_ or ()), *(more or ())), tuple(blank or ()), create_missing, dry_run)
    import_run.run(
        session,
        import_run.Options(file, json, refused),
        lambda: readers.open_file(file, form),
        lambda store, reader, told: importing.run(store, reader, options, now=now, told=told),
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
    refused: Refused = None,
    json: AsJson = False,
) -> None:
    """Import playlists, a track a row. Refused rows are listed, the rest goes in; a second run changes nothing."""
    from musicsvc.store.importing import playlists as importing
    from musicsvc.store.importing import readers

    if owner is None:
        raise typer.BadParameter("Playlists need an owner. Say whose they are: --manager EMAIL.")
    session = Session.from_context(context)
    now = session.clock.now()
    options = importing.Options(owner, (*(map_ or ()), *(more or ())), tuple(blank or ()), public, dry_run)
    import_run.run(
        session,
        import_run.Options(file, json, refused),
        lambda: readers.open_file(file, form),
        lambda store, reader, told: importing.run(store, reader, options, now=now, told=told),
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
    refused: Refused = None,
    json: AsJson = False,
) -> None:
    """Import plays, tables or what other services export. Refused rows are listed; a second run changes nothing."""
    from musicsvc.store.importing import histories
    from musicsvc.store.importing import plays as importing

    session = Session.from_context(context)
    now = session.clock.now()
    pairs = (*(map_ or ()), *(more or ()))
    options = importing.Options(pairs, tuple(blank or ()), listener, manager, create_missing, dry_run)
    if listener is None and histories.is_history(file, form, mapped=bool(pairs)):
        raise Failure(importing.NO_LISTENER)
    import_run.run(
        session,
        import_run.Options(file, json, refused),
        lambda: histories.open_file(file, form, mapped=bool(pairs)),
        lambda store, reader, told: importing.run(store, reader, options, now=now, told=told),
    )
