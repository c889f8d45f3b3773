"""Values of artists, albums and tracks as people type them: read from the database, and with ids in place of names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from musicsvc.errors import existing
from musicsvc.store.catalog import artists, names
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.fields import FIELDS, Field
from musicsvc.store.engine.sql import lock_rows
from musicsvc.store.models import Album, AlbumTag, Genre, Tag, Track, TrackGenre, TrackTag

TOO_MANY = 51  # artists of a track


def load(noun: str, row_id: int, *, lock: bool = False) -> dict[str, str]:
    """Return the text of each field, by name. `lock`: nobody else edits the row until the transaction ends.

    Raises `NotFound`.
    """
    model = names.TABLES[noun]
    query = model.select().where(model.id == row_id)
    row = existing((lock_rows(query) if lock else query).first(), f"There is no such {noun}.")
    return {field.name: field.show(_value(noun, field.name, row)) for field in FIELDS[noun]}


def notes(noun: str, row_id: int) -> dict[str, str]:
    """Return notes on fields of which the row has more than their texts show: a track can have several genres."""
    genres = _genres(Track(id=row_id)) if noun == "track" else []
    return {"genre": f"Another one replaces all of its genres: {'; '.join(genres)}."} if len(genres) > 1 else {}


def blank(noun: str) -> dict[str, str]:
    """Return the text of each field of a new row: of most fields, none."""
    linked, row = LINKED[noun], names.TABLES[noun]()
    return {each.name: "" if each.name in linked else each.show(getattr(row, each.name)) for each in FIELDS[noun]}


def given(noun: str, artist_id: int | None, album_id: int | None) -> dict[str, str]:
    """Return the texts of the fields of a new album of an artist, or track on an album. Ignores unknown ids."""
    album = None if album_id is None else Album.get_or_none(Album.id == album_id)
    credit = artists.find([artist_id] if artist_id is not None and not artists.missing([artist_id]) else [])
    if album is not None:
        credit = [*artists.of_albums([album.id]).get(album.id, ())]
    named = [names.with_id(artist.name, artist.id) for artist in credit]
    values = {
        "artist_id": named[0] if named else None,
        "artists": named or None,
        "album_id": None if album is None else names.with_id(album.name, album.id),
    }
    return {field.name: field.show(values[field.name]) for field in FIELDS[noun] if field.name in values}


def _value(noun: str, name: str, row: Any) -> Any:
    linked = LINKED[noun]
    return linked[name](row) if name in linked else getattr(row, name)


def find_ids(field: Field, value: Any, manager_id: int | None) -> Any:
    """Return the parsed value of a field with ids in place of names (`names.find_id`). Raises Failure."""
    if field.noun is None:
        return value
    if isinstance(value, list):  # the schema refuses a longer one, whatever it contains
        return [find_ids(field, each, manager_id) for each in value[:TOO_MANY]]
    return names.find_id(field.noun, value, manager_id=manager_id) if isinstance(value, str) else value


def _credit(found: Mapping[int, Iterable[ArtistRow]]) -> list[str]:
    return [names.with_id(artist.name, artist.id) for rows in found.values() for artist in rows]


def _first(values: list[str]) -> str | None:
    return values[0] if values else None


def _labels(label: Any, link: Any, owner: Any, name: Any) -> Callable[[Any], list[str]]:
    """Return a function that returns the names of the genres or tags of a row."""
    return lambda row: [
        each for (each,) in link.select(name).join(label).where(owner == row.id).order_by(name).tuples()
    ]


_genres = _labels(Genre, TrackGenre, TrackGenre.track, Genre.display_name)


def _album(track: Any) -> str | None:
    found = Album.get_or_none(Album.id == track.album_id)
    return None if found is None else names.with_id(found.name, found.id)


# Functions for the fields that are no columns of the row.
LINKED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "artist": {},
    "album": {
        "artist_id": lambda album: _first(_credit(artists.of_albums([album.id]))),
        "tags": _labels(Tag, AlbumTag, AlbumTag.album, Tag.name),
    },
    "track": {
        "artists": lambda track: _credit(artists.of_tracks([track.id])),
        "album_id": _album,
        "genre": lambda track: _first(_genres(track)),
        "tags": _labels(Tag, TrackTag, TrackTag.track, Tag.name),
    },
}
