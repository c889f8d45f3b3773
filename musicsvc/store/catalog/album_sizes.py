"""The size of albums as JSON with their tracks, which is limited so that a page of 20 fits into 16 MiB."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from peewee import SQL, fn

from musicsvc.errors import Invalid
from musicsvc.store.catalog import fields
from musicsvc.store.engine.sql import batches, compiled, lock_row
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist

MOST_TRACKS = 1000
LARGEST_ALBUM = 768 * 1024  # bytes
LONGEST_ID = 1_234_567_890  # in place of all ids, so that an import can measure what has none yet

COLUMNS = fields.shown_columns("album")


def _frame(keys: Sequence[str], rest: Mapping[str, object]) -> int:
    """Return the bytes that a JSON object with these keys, `rest` and a comma has more than the list of its values."""
    return len(orjson.dumps({**dict.fromkeys(keys), **rest})) - len(orjson.dumps([None] * len(keys))) + len(",")


# As long as objects can become. The keys are those of the values after the first in each row.
ARTIST = _frame(("name", "image_small"), {"id": LONGEST_ID, "verified": False})
TRACK = _frame(("name", "release_date", "image", "duration", "description"), {"id": LONGEST_ID, "artists": []})
ALBUM = _frame(
    COLUMNS,
    {
        "id": LONGEST_ID,
        "tracks": [],
        "artists": [],
        "model_type": "album",
        "plays": 2**63 - 1,
        "created_at": "2026-01-31T12:00:00.000000Z",
    },
)
EMPTY_ALBUM = ALBUM + len(orjson.dumps([None] * len(COLUMNS)))


class AlbumSize(NamedTuple):
    """The number of tracks of an album, and the bytes of its JSON with one more for each track and artist."""

    tracks: int
    bytes: int

    @property
    def excess(self) -> str:
        return excess_of(self.tracks, self.bytes)


def excess_of(tracks: int, size: int) -> str:
    """Return an error message if an album has too many tracks or JSON bytes (`size`), else an empty string."""
    if tracks > MOST_TRACKS:
        return f"An album holds at most {MOST_TRACKS:,} tracks."
    if size > LARGEST_ALBUM:
        return f"An album with its tracks takes at most {LARGEST_ALBUM // 1024} KiB as JSON."
    return ""


def measure(album_ids: Collection[int]) -> dict[int, AlbumSize]:
    """Encode albums as the API shows them to callers with a token, and return the size of each by id."""
    tracks, size = Counter[int](), Counter[int]()
    for load, frame in ((_albums, ALBUM), (_album_artists, ARTIST), (_tracks, TRACK), (_track_artists, ARTIST)):
        for album_id, *row in load(album_ids):
            size[album_id] += frame + len(orjson.dumps(row))
            tracks[album_id] += load is _tracks
    return {album_id: AlbumSize(tracks[album_id], size[album_id]) for album_id in size}


@compiled
def _albums(ids: Collection[int]) -> Any:
    return Album.select(Album.id, *(getattr(Album, name) for name in COLUMNS)).where(Album.id.in_(ids))


@compiled
def _album_artists(ids: Collection[int]) -> Any:
    query = AlbumArtist.select(AlbumArtist.album, Artist.name, Artist.image_small)
    return query.join(Artist).where(AlbumArtist.album.in_(ids))


@compiled
def _tracks(ids: Collection[int]) -> Any:
    row = Track.name, Track.release_date, fn.COALESCE(Track.image, Album.image), Track.duration, Track.description
    return Track.select(Track.album, *row).join(Album).where(Track.album.in_(ids))


@compiled
def _track_artists(ids: Collection[int]) -> Any:
    query = Track.select(Track.album, Artist.name, Artist.image_small).join(TrackArtist).join(Artist)
    return query.where(Track.album.in_(ids))


@compiled
def _with_artist(artist_id: int) -> Any:
    """Return a query for the albums whose JSON contains an artist."""
    own = AlbumArtist.select(AlbumArtist.album).where(AlbumArtist.artist == artist_id)
    of_tracks = TrackArtist.select(Track.album).join(Track).where(TrackArtist.artist == artist_id)
    return own.union(of_tracks.where(Track.album.is_null(is_null=False))).order_by(SQL("1"))


def of_artist(name: str, image_small: str | None) -> int:
    """Return the bytes of an artist in the JSON of an album or track."""
    return ARTIST + len(orjson.dumps((name, image_small)))


def of_track(*values: object) -> int:
    """Return the bytes of a track without its artists in the JSON of an album. `values`: as in `_tracks`."""
    return TRACK + len(orjson.dumps(values))


def lock_album(album_id: int) -> None:
    """Prevent other transactions from adding tracks to the album until this transaction ends."""
    lock_row(Album, album_id)


def require_within_limits(album_id: int, field: str) -> None:
    """Raise Invalid for the request field `field` if the album has too many tracks or JSON bytes.

    An album that another transaction has just deleted has neither.
    """
    size = measure([album_id]).get(album_id)
    if size is not None and size.excess:
        raise Invalid({field: size.excess})


def with_artist(artist_id: int) -> list[int]:
    """Return the albums whose JSON contains an artist."""
    return [album for (album,) in _with_artist(artist_id)]


def excess(album_ids: Sequence[int]) -> str:
    """Return an error message if one of the albums has too many tracks or JSON bytes, else an empty string."""
    for some in batches(album_ids):
        for album, size in measure(some).items():
            if size.excess:
                return f"Album {album}: {size.excess}"
    return ""
