"""Merge tracks, albums and artists: one moves into another, with all that refers to it. There is no undo.

Imports find the other by the names and codes of what was merged (`store/catalog/merged.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from musicsvc.errors import Conflict, Forbidden, NotFound
from musicsvc.store.accounts import managing
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import album_sizes, identifiers, merged
from musicsvc.store.catalog.fields import ALL
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.editing import links, notices
from musicsvc.store.engagement import comments, engagement_days
from musicsvc.store.engine.sql import lock_rows
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.plays import counting, reattribution, subjects, transfer
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, KINDS, TRACK
from musicsvc.store.security.security_events import Actor, Kind
from musicsvc.wording import plural

Noun = Literal["artist", "album", "track"]
NO_UNDO = "There is no undo."
TABLES: Mapping[int, Any] = {TRACK: Track, ALBUM: Album, ARTIST: Artist}
EVENTS: Mapping[int, Kind] = {TRACK: "track.merged", ALBUM: "album.merged", ARTIST: "artist.merged"}


class MergePreview(NamedTuple):
    """The effects of a merge. `moved`: numbers of rows by their names. `taken`: fields, named as in the API.

    `repeated_plays`: plays that go, since of two plays of one listener in one half minute one stays.
    """

    kind: Noun
    from_id: int
    from_name: str
    into_id: int
    into_name: str
    moved: Mapping[str, int]
    repeated_plays: int
    taken: Sequence[str]

    @property
    def moves(self) -> list[str]:
        """The rows that move, in words, such as `3 tracks`."""
        return [plural(number, name.replace("_", " ")) for name, number in self.moved.items()]


class _Pair(NamedTuple):
    """The two rows, by column."""

    noun: Noun
    source: Mapping[str, Any]
    target: Mapping[str, Any]

    @property
    def kind(self) -> int:
        return KINDS[self.noun]

    @property
    def ids(self) -> tuple[int, int]:
        return self.source["id"], self.target["id"]


def preview(noun: Noun, from_id: int, into_id: int, *, caller: Caller | None = None) -> MergePreview:
    """Return what `merge` would do now. Raises as `merge`, except for an album that would be too large."""
    return _describe(_load(noun, from_id, into_id, caller))


def merge(
    noun: Noun, from_id: int, into_id: int, *, now: int, caller: Caller | None = None, actor: Actor = "cli"
) -> MergePreview:
    """Merge a track, album or artist into another, which keeps its values. Without `caller`, no right is checked.

    Raises NotFound, Forbidden unless the caller manages both or is an administrator, Conflict for a merge into itself
    and for an album that would be too large.
    """
    lock_imports()
    identifiers.lock()
    counting.lock()
    engagement_days.lock()
    kind = KINDS[noun]
    pair = _load(noun, from_id, into_id, caller, locking=True)
    found = _describe(pair)
    managers = managing.managers_of(noun, from_id) | managing.managers_of(noun, into_id)
    {TRACK: _merge_tracks, ALBUM: _merge_albums, ARTIST: _merge_artists}[kind](pair, now)
    about = f"{noun} {from_id} ({found.from_name}) into {noun} {into_id} ({found.into_name})"
    account = None if caller is None else caller.user_id
    notices.log(EVENTS[kind], about, managers, account=account, now=now, actor=actor)
    return found


def _load(noun: Noun, from_id: int, into_id: int, caller: Caller | None, *, locking: bool = False) -> _Pair:
    kind = KINDS[noun]
    table = TABLES[kind]
    query = table.select().where(table.id.in_((from_id, into_id))).order_by(table.id)
    query = lock_rows(query, deleting=True) if locking else query
    rows = {row["id"]: row | {"album_id": row.get("album")} for row in query.dicts().iterator()}
    for number in (from_id, into_id):
        if number not in rows:
            raise NotFound(f"There is no {noun} {number}.")
        if caller is not None and not caller.admin and caller.user_id not in managing.managers_of(noun, number):
            raise Forbidden(f"You do not manage {noun} {number}.")
    if from_id == into_id:
        raise Conflict(f"{noun.capitalize()} {from_id} cannot be merged into itself.")
    return _Pair(noun, rows[from_id], rows[into_id])


def _describe(pair: _Pair) -> MergePreview:
    source, target = pair.ids
    moved = links.count(pair.kind, source, target)
    plays = reader.all_time_plays(pair.kind, [source]).get(source, 0)
    repeated = []
    if pair.kind == TRACK:
        moved["comments"] = comments.count(source)
        repeated = transfer.repeated(source, target)
    moved["plays"] = plays - sum(play.track == source for play in repeated)
    names = pair.source["name"], pair.target["name"]
    shown = {name: number for name, number in moved.items() if number}
    return MergePreview(pair.noun, source, names[0], target, names[1], shown, len(repeated), [*_taken(pair)])


def _taken(pair: _Pair) -> dict[str, Any]:
    """Return the values of the one row that the other lacks."""
    with_album = pair.target["album_id"] in {None, pair.source["album_id"]}
    names = [each.name for each in ALL[pair.noun] if each.merged or (each.with_album and with_album)]
    taken = {name: pair.source[name] for name in names if _is_blank(pair.target[name])}
    if taken.get("isrc") is not None and _is_used(taken["isrc"], pair):
        del taken["isrc"]
    return {name: value for name, value in taken.items() if not _is_blank(value)}


def _is_blank(value: object) -> bool:
    """Return whether a column has no value. An unknown length of a track is 0."""
    return value is None or (value == 0 and value is not False)


def _is_used(isrc: str, pair: _Pair) -> bool:
    """Return whether a third track of a manager of the other track has this ISRC."""
    source, target = pair.ids
    return any(
        identifiers.tracks_by_isrc([isrc], manager, besides=source) for manager in managing.managers_of("track", target)
    )


def _merge_tracks(pair: _Pair, now: int) -> None:
    source, target = pair.ids
    album = _taken(pair).get("album_id", pair.target["album_id"])
    before = subjects.of_tracks(pair.ids).subjects()
    with reattribution.rebuilding([target]):
        if album is not None:
            album_sizes.lock_album(album)
        links.move(TRACK, source, target)
        comments.move(source, target)
        days = transfer.move(source, target)
        _replace(pair, now, code=pair.source["isrc"], album=pair.source["album_id"])
        others = {*before[source], *before[target]}
        transfer.renew(days, others | {*subjects.of_tracks([target]).subjects()[target]})
        engagement_days.rebuild(others)
    if album is not None and (excess := album_sizes.measure([album])[album].excess):
        raise Conflict(excess)


def _merge_albums(pair: _Pair, now: int) -> None:
    source, target = pair.ids
    with reattribution.rebuilding(subjects.tracks_of(ALBUM, [source])):
        links.move(ALBUM, source, target)
        _replace(pair, now, code=pair.source["upc"])
    if excess := album_sizes.measure([target])[target].excess:
        raise Conflict(excess)


def _merge_artists(pair: _Pair, now: int) -> None:
    source, target = pair.ids
    with reattribution.rebuilding(subjects.tracks_of(ARTIST, [source])):
        links.move(ARTIST, source, target)
        _replace(pair, now, external_id=None, imported_for=0)
    sizes = [album_sizes.of_artist(row["name"], row["image_small"]) for row in (pair.source, pair.target)]
    image = pair.target["image_small"] or pair.source["image_small"]
    grown = album_sizes.of_artist(pair.target["name"], image) > min(sizes)
    if grown and (excess := album_sizes.excess(album_sizes.with_artist(target))):
        raise Conflict(excess)


def _replace(pair: _Pair, now: int, **codes: Any) -> None:
    """Delete the one row, whose references have moved, and let the other be found by its name and codes, too."""
    (source, target), table = pair.ids, TABLES[pair.kind]
    taken, artists = _taken(pair), _credited(pair.kind, source)
    table.delete().where(table.id == source).execute()
    table.update(**taken, edited_at=now).where(table.id == target).execute()
    values = {name: pair.source.get(name) for name in ("name", "external_id", "imported_for")}
    merged.add(pair.kind, source, target, values | codes, artists)
    if "album_id" in taken:  # a row of a file that names no album still finds it
        before = {"name": pair.target["name"], "code": pair.target["isrc"], "imported_for": 0}
        merged.add(pair.kind, target, target, before, _credited(TRACK, target))


def _credited(kind: int, row_id: int) -> list[int]:
    """Return the artists by which imports find a row: all of a track, the first of an album."""
    if kind == ARTIST:
        return []
    first = AlbumArtist.select(AlbumArtist.artist).order_by(AlbumArtist.position, AlbumArtist.artist).limit(1)
    all_ = TrackArtist.select(TrackArtist.artist)
    rows: Any = first.where(AlbumArtist.album == row_id) if kind == ALBUM else all_.where(TrackArtist.track == row_id)
    return [artist for (artist,) in rows.tuples().iterator()]
