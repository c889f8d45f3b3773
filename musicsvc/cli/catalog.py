"""`musicsvc artist`, `album`, `track`: list, search, show, edit, merge and delete them; `musicsvc fingerprint`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from itertools import count, islice
from typing import Annotated, Any, Literal

import typer

from musicsvc.cli import output
from musicsvc.cli.options import Limit, Yes, argument, flag, group, option, refuse, row
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid
from musicsvc.server.schemas import editing
from musicsvc.server.shapes import catalog
from musicsvc.store.catalog import albums, artists, track_lists, tracks
from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.editing import deletions, edits, merging
from musicsvc.store.engine import name_index, pagination
from musicsvc.wording import quantity

DryRun = Annotated[bool, flag("Show what would move, and change nothing.", "--dry-run")]
PAGE, FOUND = 500, 20
COLUMNS = {
    "artist": ("id", "name", "albums_count", "tracks_count", "manager_id"),
    "album": ("id", "name", "artists", "release_date", "label", "upc"),
    "track": ("id", "name", "artists", "album_id", "release_date", "isrc", "plays"),
}
DELETED = {
    "artist": "An artist that is the only one of a track, or the first of an album, cannot be deleted.",
    "album": "Its tracks stay, without an album.",
    "track": "Its comments, likes and reposts are deleted, and it leaves playlists and collections.",
}
MERGED = {
    "artist": "The other gets its tracks and albums.",
    "album": "The other gets its tracks, artists and tags.",
    "track": "The other gets its plays, likes, reposts and comments, and its place in playlists and collections.",
}
KEPT = (
    "The other keeps its values, and takes those that it lacks. Imports find it by the former name and codes, too."
    " There is no undo."
)
NO_UNDO = "Plays stay in the figures of what else they belong to. There is no undo."


def add_commands(app: typer.Typer, noun: merging.Noun) -> None:
    """Add the commands for artists, albums or tracks (`noun`) to a group."""
    app.command("list", help=f"List all {noun}s, newest first.")(_list(noun))
    app.command("search", help=f"Search for {noun}s by name, the best match first.")(_search(noun))
    app.command("show", help=f"Show one {noun} as the API does.")(_show(noun))
    app.command("edit", help=f'Change fields of one {noun}. An empty text ("") empties a field.')(_edit(noun))
    app.command("merge", help=f"Merge one {noun} into another. {MERGED[noun]} {KEPT}")(_merge(noun))
    app.command("delete", help=f"Delete one {noun}. {DELETED[noun]} {NO_UNDO}")(_delete(noun))


def _list(noun: str) -> Callable[..., None]:
    def list_(session: Session, limit: Limit = None) -> None:
        _print(session, noun, session.read(lambda: [*islice(_all(noun), limit)]))

    return list_


def _search(noun: str) -> Callable[..., None]:
    def search(session: Session, text: Annotated[str, argument("TEXT", "A part of the name.")]) -> None:
        _print(session, noun, session.read(lambda: _shapes(noun, name_index.INDEXES[noun].find(text, FOUND))))

    return search


def _show(noun: str) -> Callable[..., None]:
    def show(session: Session, chosen: int) -> None:
        found = session.read(lambda: _shape(noun, chosen))
        output.print_record(session, found if session.json else _readable(found))

    show.__annotations__["chosen"] = Annotated[int, row(noun)]
    return show


def _edit(noun: str) -> Callable[..., None]:
    """Return a command with an option for each field."""

    def edit(session: Session, chosen: int, **given: str | None) -> None:
        typed = {name: text for name, text in given.items() if text is not None}
        if not typed:
            raise typer.BadParameter(f"Name a field to change, such as {FIELDS[noun][0].option}.")
        faults = editing.faults(noun, typed, editing.EDIT[noun], now=session.now)
        refuse({f"--{name.replace('_', '-')}": fault for name, fault in faults.items()})
        found = session.write(lambda: _change(noun, chosen, typed, session.now))
        output.print_result(session, f"{found['name']} ({noun} {found['id']}) is changed.", found)

    kinds: dict[str, Any] = {"session": Session, "chosen": Annotated[int, row(noun)]}
    for field in FIELDS[noun]:
        metavar = {"number": "N", "date": "DATE"}.get(field.form, "TEXT")
        kinds[field.name] = Annotated[str | None, option(metavar, f"{field.help}.", field.option)]
    defaults = {"session": Parameter.empty, "chosen": Parameter.empty}
    of_call = Parameter.KEYWORD_ONLY
    named = [Parameter(name, of_call, default=defaults.get(name), annotation=kind) for name, kind in kinds.items()]
    command: Any = edit
    command.__signature__, command.__annotations__ = Signature(named), kinds
    return edit


def _merge(noun: merging.Noun) -> Callable[..., None]:
    def merge(session: Session, chosen: int, into: int, dry_run: DryRun = False, yes: Yes = False) -> None:
        found = session.read(lambda: merging.preview(noun, chosen, into))
        about = f"{found.from_name} ({noun} {found.from_id}) into {found.into_name} ({noun} {found.into_id})"
        if dry_run:
            output.print_result(session, f"This would merge {about}. {_moves(found)}", found._asdict())
            return
        if not yes:
            session.confirm(f"merges {about}", f"Merge {about}?", hint=f"{_moves(found)} {merging.NO_UNDO}")
        done = session.write(lambda: merging.merge(noun, found.from_id, found.into_id, now=session.now))
        output.print_result(session, f"Merged {about}.", done._asdict())

    merge.__annotations__ |= {"chosen": Annotated[int, row(noun)], "into": Annotated[int, row(noun, "INTO", "other")]}
    return merge


def _moves(found: merging.MergePreview) -> str:
    """Return sentences that say what a merge moves, drops and takes over."""
    said = [f"To move: {', '.join(found.moves) or 'nothing'}."]
    if found.repeated_plays:
        said.append(
            f"{quantity(found.repeated_plays, 'play')} of the same listener in the same half minute will be dropped."
        )
    if found.taken:
        said.append(f"To take over: {', '.join(found.taken)}.")
    return " ".join(said)


def _delete(noun: str) -> Callable[..., None]:
    def delete(session: Session, chosen: int, yes: Yes = False) -> None:
        found = session.read(lambda: _shape(noun, chosen))
        about = f"{found['name']} ({noun} {found['id']})"
        if not yes:
            session.confirm(f"deletes {about}", f"Delete {about}?", hint=f"{DELETED[noun]} {NO_UNDO}")
        session.write(lambda: _remove(noun, found["id"], session.now))
        output.print_result(session, f"{about} is deleted.", {"id": found["id"], "name": found["name"]})

    delete.__annotations__["chosen"] = Annotated[int, row(noun)]
    return delete


def _all(noun: str) -> Iterator[JSON]:
    lists: dict[str, Callable[[pagination.Page], pagination.Listing[Any]]] = {
        "artist": artists.list_all,
        "album": albums.list_all,
        "track": lambda page: track_lists.find(track_lists.TrackFilters(), page),
    }
    for number in count(1):
        ids = lists[noun](pagination.Page(number, PAGE)).ids
        if not ids:
            return
        yield from _shapes(noun, ids)


def _shape(noun: str, number: int) -> JSON:
    """Return one row as the API shows it. Raises NotFound."""
    _row(noun, number)
    return _shapes(noun, [number])[0]


def _row(noun: str, number: int) -> Any:
    """Return the artist, album or track. Raises NotFound."""
    rows: dict[str, Any] = {"artist": artists, "album": albums, "track": tracks}
    return rows[noun].get(number)


def _shapes(noun: str, ids: Sequence[int]) -> list[JSON]:
    if noun == "artist":
        return [catalog.artist_full(row) | {"manager_id": row.manager_id} for row in artists.find(ids)]
    if noun == "album":
        return [catalog.album_full(row) for row in albums.with_contents(albums.find(ids))]
    return [catalog.track_full(row) for row in tracks.complete(tracks.find(ids) if ids else [])]


def _change(noun: str, number: int, typed: Mapping[str, str], now: int) -> JSON:
    row = _row(noun, number)
    changes, faults = editing.read(noun, typed, editing.EDIT[noun], now=now)
    if faults:
        raise Invalid({f"--{name.replace('_', '-')}": fault for name, fault in faults.items()})
    edits.edit(row, changes, now=now)
    return _shape(noun, number)


def _remove(noun: str, number: int, now: int) -> None:
    row = _row(noun, number)
    deletions.delete(row, now=now, account=None, actor="cli")


def _print(session: Session, noun: str, rows: list[JSON]) -> None:
    shown = rows if session.json else [_readable(row) for row in rows]
    output.print_table(session, shown, COLUMNS[noun], cut="name")


def _readable(row: JSON) -> JSON:
    """Return a row of the API for a table: of lists, the names."""
    return {
        name: "; ".join(str(each.get("display_name") or each["name"]) for each in value)
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }


album_app = group(
    "album edit 7 --release-date 1725-01-01 --label Breitkopf",
    "album merge 9 7 --dry-run",
    "album delete 7 --yes",
)
track_app = group(
    "track edit 7 --isrc GBAYE6800011 --explicit no",
    "track merge 9 7 --dry-run",
    "track delete 7 --yes",
)
add_commands(album_app, "album")
add_commands(track_app, "track")

fingerprint_app = group(
    "fingerprint set 7 processing",
    "fingerprint set 7 completed --json",
)
Status = Literal["pending", "processing", "completed", "failed"]


@fingerprint_app.command("set")
def set_fingerprint(
    session: Session,
    track_id: Annotated[int, row("track", "TRACK_ID")],
    status: Annotated[Status, typer.Argument(metavar="STATUS", help="pending, processing, completed or failed.")],
) -> None:
    """Set the status of a track's fingerprint.

    The order is pending, processing, completed or failed; failed can be set back to pending.
    """
    session.write(lambda: tracks.set_fingerprint_status(track_id, status))
    result = {"track_id": track_id, "fingerprint_status": status}
    output.print_result(session, f"The fingerprint of track {track_id} is {status}.", result)
