"""The size of albums as JSON with their tracks, which is limited so that a page of 20 fits into 16 MiB."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import orjson

from musicsvc.errors import Invalid
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import batches, fetch, lock_rows
from musicsvc.store.models import Album

MOST_TRACKS = 1000
LARGEST_ALBUM = 768 * 1024  # bytes
LONGEST_ID = 1_234_567_890  # in place of all ids, so that an import can measure what has none yet

ALBUM_ARTISTS = """
    SELECT l.album_id, a.name, a.image_small
    FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE l.album_id {among}
"""
TRACKS = """
    SELECT t.album_id, t.name, t.release_date, COALESCE(t.image, a.image), t.duration, t.description
    FROM track t JOIN album a ON a.id = t.album_id WHERE t.album_id {among}
"""
TRACK_ARTISTS = """
    SELECT t.album_id, a.name, a.image_small
    FROM track t JOIN track_artist l ON l.track_id = t.id JOIN artist a ON a.id = l.artist_id WHERE t.album_id {among}
"""
ALBUMS = "SELECT id, name, image, release_date, description, upc, label FROM album WHERE id {among}"


def _frame(keys: Sequence[str], rest: Mapping[str, object]) -> int:
    """Return the bytes that a JSON object with these keys, `rest` and a comma has more than the list of its values."""
    return len(orjson.dumps({**dict.fromkeys(keys), **rest})) - len(orjson.dumps([None] * len(keys))) + len(",")


# As long as objects can become. The keys are those of the values after the first in each row.
ARTIST = _frame(("name", "image_small"), {"id": LONGEST_ID, "verified": False})
TRACK = _frame(("name", "release_date", "image", "duration", "description"), {"id": LONGEST_ID, "artists": []})
ALBUM = _frame(
    ("name", "image", "release_date", "description", "upc", "label"),
    {
        "id": LONGEST_ID,
        "tracks": [],
        "artists": [],
        "model_type": "album",
        "plays": 2**63 - 1,
        "created_at": "2026-01-31T12:00:00.000000Z",
    },
)
PARTS = ((ALBUMS, ALBUM), (ALBUM_ARTISTS, ARTIST), (TRACKS, TRACK), (TRACK_ARTISTS, ARTIST))

# The albums whose JSON contains an artist.
WITH_ARTIST = """
    SELECT album_id FROM album_artist WHERE artist_id = ? UNION
    SELECT t.album_id FROM track_artist l JOIN track t ON t.id = l.track_id
    WHERE l.artist_id = ? AND t.album_id IS NOT NULL ORDER BY 1
"""


class AlbumSize(NamedTuple):
    """The number of tracks of an album, and the bytes of its JSON with one more for each track and artist."""

    tracks: int
    bytes: int

    @property
    def excess(self) -> str:
        """An error message if the album has too many tracks or JSON bytes, else an empty string."""
        if self.tracks > MOST_TRACKS:
            return f"An album holds at most {MOST_TRACKS:,} tracks."
        if self.bytes > LARGEST_ALBUM:
            return f"An album with its tracks takes at most {LARGEST_ALBUM // 1024} KiB as JSON."
        return ""


def measure(album_ids: Collection[int]) -> dict[int, AlbumSize]:
    """Encode albums as the API shows them to callers with a token, and return the size of each by id."""
    among, values = sql.in_list(album_ids)
    tracks, size = Counter[int](), Counter[int]()
    for statement, frame in PARTS:
        for album_id, *row in fetch(statement.format(among=among), values):
            size[album_id] += frame + len(orjson.dumps(row))
            tracks[album_id] += statement is TRACKS
    return {album_id: AlbumSize(tracks[album_id], size[album_id]) for album_id in size}


def of_artist(name: str, image_small: str | None) -> int:
    """Return the bytes of an artist in the JSON of an album or track."""
    return ARTIST + len(orjson.dumps((name, image_small)))


def of_track(*values: object) -> int:
    """Return the bytes of a track without its artists in the JSON of an album. `values`: those of TRACKS."""
    return TRACK + len(orjson.dumps(values))


def of_album(*values: object) -> int:
    """Return the bytes of an album without its artists and tracks. `values`: those of ALBUMS."""
    return ALBUM + len(orjson.dumps(values))


def lock_album(album_id: int) -> None:
    """Prevent other transactions from adding tracks to the album until this transaction ends."""
    lock_rows(Album.select(Album.id).where(Album.id == album_id)).first()


def require_within_limits(album_id: int, field: str) -> None:
    """Raise Invalid for the request field `field` if the album has too many tracks or JSON bytes."""
    if excess := measure([album_id])[album_id].excess:
        raise Invalid({field: excess})


def excess_with_artist(artist_id: int) -> str:
    """Return an error message if an album with the artist has too many tracks or JSON bytes, else an empty string."""
    for some in batches([album for (album,) in fetch(WITH_ARTIST, artist_id, artist_id)]):
        for album, size in measure(some).items():
            if size.excess:
                return f"Album {album}: {size.excess}"
    return ""
