"""Restore the tracks and albums that an import changed, except fields that were changed again since."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from peewee import Model

from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import lock_rows
from musicsvc.store.importing.catalog import albums
from musicsvc.store.importing.undoing import runs
from musicsvc.store.importing.undoing.made_rows import Taken
from musicsvc.store.importing.undoing.runs import ADDED, Changes
from musicsvc.store.models import Album, AlbumArtist, Artist, ImportItem, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.plays import reattribution

AT_ONCE = 200
CHANGED_SINCE = "changed since"
ARTISTS = "artists"


def restore_tracks(import_id: int, below: int) -> Taken | None:
    """Restore a batch of tracks with ids below `below` that the import changed. Return None if no track remains."""
    lock_imports()
    items = _changed(Track, import_id, below)
    moved = [track for track, changes in items if changes.keys() & {"album", "duration", ARTISTS}]
    with reattribution.rebuilding(moved):
        credits_of = _track_artists(moved)
        kept = {track: _restore_track(track, changes, credits_of.get(track, [])) for track, changes in items}
    return _taken(Track, import_id, kept)


def restore_albums(import_id: int, below: int) -> Taken | None:
    """Restore a batch of albums with ids below `below` that the import changed. Return None if no album remains."""
    lock_imports()
    items = _changed(Album, import_id, below)
    kept: dict[int, Changes] = {}
    for album, changes in items:
        artists = {name: changes.pop(name) for name in (ARTISTS, ADDED + ARTISTS) if name in changes}
        order, added = artists.get(ARTISTS, ((), ())), artists.get(ADDED + ARTISTS, ())
        kept[album] = {} if not artists or _restore_artists(album, order, added) else artists
        kept[album] |= _restore_fields(Album, album, changes)
    return _taken(Album, import_id, kept)


def forget_earlier(import_id: int) -> None:
    """If all tracks are restored, delete the records that keep the earlier albums and artists of these tracks."""
    lock_imports()
    if not runs.items(import_id, Track, ImportItem.changes.is_null(is_null=False)).exists():
        ImportItem.delete().where(ImportItem.run == import_id, ImportItem.changes == "{}").execute()


def _changed(table: type[Model], import_id: int, below: int) -> list[tuple[int, Changes]]:
    rows = runs.items(import_id, table, ImportItem.changes != "{}").where(ImportItem.item < below)
    rows = rows.select_extend(ImportItem.changes).order_by(ImportItem.item.desc()).limit(AT_ONCE)
    return [(item, orjson.loads(changes)) for item, changes in rows.tuples().iterator()]


def _taken(table: type[Model], import_id: int, kept: Mapping[int, Changes]) -> Taken | None:
    """Delete the records of rows that were restored completely. For all other rows, store the changes that remain.

    `kept`: by row id, the changes that could not be undone, or an empty dict for a restored row.
    """
    if not kept:
        return None
    left = {item: changes for item, changes in kept.items() if changes}
    runs.replace(import_id, table, kept, left)
    reasons = {
        item: f"{', '.join(dict.fromkeys(each.removeprefix(ADDED) for each in changes))} {CHANGED_SINCE}"
        for item, changes in left.items()
    }
    return Taken(runs.table_name(table), min(kept), len(kept) - len(left), reasons)


def _restore_track(track: int, changes: Changes, artists: Sequence[int]) -> Changes:
    """Restore the track's old fields, artists, genres and tags. Return the changes that could not be undone."""
    _unlink(TrackGenre, TrackGenre.track, TrackGenre.genre, track, changes.pop(ADDED + "genres", ()))
    _unlink(TrackTag, TrackTag.track, TrackTag.tag, track, changes.pop(ADDED + "tags", ()))
    by = changes.pop(ARTISTS, None)
    kept = _restore_fields(Track, track, changes)
    if by is None or not Track.select().where(Track.id == track).exists():
        return kept
    old, new = by
    if list(artists) != new or Artist.select().where(Artist.id.in_(old)).count() != len(old):
        return kept | {ARTISTS: by}
    bulk.relink(TrackArtist, track, old)
    return kept


def _restore_artists(album: int, order: Sequence[Sequence[int]], added: Sequence[int]) -> bool:
    """Remove artists from an album, and restore the order of the others.

    Return False if others were put first since, or if no artist would be left.
    """
    rows: Any = AlbumArtist.select(AlbumArtist.artist).where(AlbumArtist.album == album)
    rows = rows.order_by(AlbumArtist.position, AlbumArtist.artist).tuples()
    now = [artist for (artist,) in rows.iterator()]
    old, new = order
    expected = [artist for artist in new if artist in now]
    left = [artist for artist in dict.fromkeys([*old, *now]) if artist in now and artist not in added]
    if now[: len(expected)] != expected or (now and not left):
        return False
    _unlink(AlbumArtist, AlbumArtist.album, AlbumArtist.artist, album, added)
    albums.reorder(album, left)
    return True


def _restore_fields(table: Any, item: int, changes: Changes) -> Changes:
    """Restore the fields that still have the import's value. Return the changes of all other fields."""
    if not changes:
        return {}
    columns = [getattr(table, name) for name in changes]
    for row in lock_rows(table.select(*columns).where(table.id == item)).tuples().iterator():
        current = dict(zip(changes, row, strict=True))
        back = {name: old for name, (old, new) in changes.items() if current[name] == new and _exists(name, old)}
        if back:
            table.update(**back).where(table.id == item).execute()
        return {name: each for name, each in changes.items() if name not in back}
    return {}


def _exists(name: str, value: Any) -> bool:
    """Return False if the field is `album` and its value is the id of a deleted album."""
    return name != "album" or value is None or Album.select().where(Album.id == value).exists()


def _unlink(table: Any, owner: Any, member: Any, item: int, members: Sequence[int]) -> None:
    if members:
        table.delete().where(owner == item, member.in_(members)).execute()


def _track_artists(tracks: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    query = TrackArtist.select(TrackArtist.track, TrackArtist.artist).where(TrackArtist.track.in_(tracks))
    for track, artist in query.order_by(TrackArtist.track, TrackArtist.position).tuples().iterator():
        found[track].append(artist)
    return found
