"""Bytes that albums and tracks take as JSON, measured in SQL before anything is loaded.

The sizes are upper bounds: ids and durations count as ten digits, counters as 19, `verified` as false.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import orjson

from musicsvc.errors import Invalid
from musicsvc.store.engine import dialect
from musicsvc.store.engine.dialect import is_sqlite, lock_rows
from musicsvc.store.engine.sql import fetch
from musicsvc.store.models import Album

if TYPE_CHECKING:
    from collections.abc import Collection

# The bounds of an album, so that a page of 20 fits into an answer of 16 MiB.
MOST_TRACKS = 1000
LARGEST_ALBUM = 768 * 1024

# The bytes of each kind without its texts, the comma after it included.
ARTIST = len('{"id":1234567890,"name":,"image_small":,"verified":false},')
TRACK = len('{"id":1234567890,"name":,"release_date":,"image":,"duration":1234567890,"description":,"artists":[]},')
ALBUM = len(
    '{"id":1234567890,"name":,"image":,"release_date":,"description":,"tracks":[],"artists":[],"model_type":"album",'
    '"created_at":"2026-01-31T12:00:00.000000Z","plays":9223372036854775807},'
)
GENRE = len('{"id":1234567890,"name":,"display_name":,"model_type":"genre"},')
TAG = len('{"id":1234567890,"name":},')
FULL_TRACK = 1024  # more than all other fields of a track together, its genres and tags aside

OF_ALBUMS = """
    SELECT a.id, 0, 0, {album} + {a_fields} + {a_image}, {a_image} FROM album a WHERE a.id {among}
    UNION ALL
    SELECT t.album_id, COUNT(*), SUM(CASE WHEN t.image IS NULL THEN 1 ELSE 0 END),
        SUM({track} + {t_fields} + CASE WHEN t.image IS NULL THEN 0 ELSE {t_image} END), 0
    FROM track t WHERE t.album_id {among} GROUP BY t.album_id
    UNION ALL
    SELECT t.album_id, 0, 0, SUM({artist}), 0 FROM track t JOIN track_artist l ON l.track_id = t.id
    JOIN artist a ON a.id = l.artist_id WHERE t.album_id {among} GROUP BY t.album_id
    UNION ALL
    SELECT l.album_id, 0, 0, SUM({artist}), 0 FROM album_artist l
    JOIN artist a ON a.id = l.artist_id WHERE l.album_id {among} GROUP BY l.album_id
"""
OF_TRACKS = """
    SELECT t.id, {track} + {t_fields} + {image} FROM track t LEFT JOIN album a ON a.id = t.album_id WHERE t.id {among}
    UNION ALL
    SELECT l.track_id, SUM({artist}) FROM track_artist l
    JOIN artist a ON a.id = l.artist_id WHERE l.track_id {among} GROUP BY l.track_id
"""
OF_WORDS = """
    UNION ALL
    SELECT l.track_id, SUM({genre}) FROM track_genre l
    JOIN genre g ON g.id = l.genre_id WHERE l.track_id {among} GROUP BY l.track_id
    UNION ALL
    SELECT l.track_id, SUM({tag}) FROM track_tag l
    JOIN tag g ON g.id = l.tag_id WHERE l.track_id {among} GROUP BY l.track_id
"""


class AlbumSize(NamedTuple):
    """An album with its tracks: `own` bytes, and `image` bytes for each of the tracks that show the album's image."""

    tracks: int
    imageless: int
    own: int
    image: int

    def plus(self, other: AlbumSize) -> AlbumSize:
        """Both together, field by field."""
        return AlbumSize(
            self.tracks + other.tracks, self.imageless + other.imageless, self.own + other.own, self.image + other.image
        )

    def minus(self, other: AlbumSize) -> AlbumSize:
        """This without the other, field by field."""
        return AlbumSize(
            self.tracks - other.tracks, self.imageless - other.imageless, self.own - other.own, self.image - other.image
        )

    @property
    def total(self) -> int:
        """The bytes of the whole album."""
        return self.own + self.imageless * self.image

    @property
    def excess(self) -> str:
        """The bound that the album exceeds, as a sentence; empty where it exceeds none."""
        if self.tracks > MOST_TRACKS:
            return f"An album holds at most {MOST_TRACKS:,} tracks."
        if self.total > LARGEST_ALBUM:
            return f"An album with its tracks takes at most {LARGEST_ALBUM // 1024} KiB as JSON."
        return ""


EMPTY = AlbumSize(0, 0, 0, 0)
NULL = len("null")
NEW_ALBUM = AlbumSize(0, 0, ALBUM + 4 * NULL, NULL)  # has no name yet


def text(value: str | None) -> int:
    """The bytes of a text as JSON."""
    return len(orjson.dumps(value))


def new_artist(name: str) -> int:
    """The bytes of an artist that has a name and nothing else."""
    return ARTIST + text(name) + NULL


def lock_album(album_id: int) -> None:
    """Let nobody else add to the album until the unit ends."""
    lock_rows(Album.select(Album.id).where(Album.id == album_id)).first()


def require_bounds(album_id: int, field: str) -> None:
    """Raise Invalid on the field where the album, as the unit has changed it, exceeds a bound."""
    if excess := of_albums([album_id])[album_id].excess:
        raise Invalid({field: excess})


def of_albums(album_ids: Collection[int]) -> dict[int, AlbumSize]:
    """The size of each of the albums."""
    among, values = dialect.in_list(album_ids)
    statement = OF_ALBUMS.format(
        among=among,
        album=ALBUM,
        a_fields=_fields("a.name", "a.release_date", "a.description"),
        a_image=_text("a.image"),
        track=TRACK,
        t_fields=_fields("t.name", "t.release_date", "t.description"),
        t_image=_text("t.image"),
        artist=_artist(),
    )
    found: dict[int, AlbumSize] = defaultdict(lambda: EMPTY)
    for album_id, *more in fetch(statement, *[values] * 4):
        found[album_id] = found[album_id].plus(AlbumSize(*map(int, more)))
    return found


def of_artists(artist_ids: Collection[int]) -> dict[int, int]:
    """The size of each of the artists within another resource."""
    among, values = dialect.in_list(artist_ids)
    return dict(fetch(f"SELECT a.id, {_artist()} FROM artist a WHERE a.id {among}", values))  # noqa: S608


def of_tracks(track_ids: Collection[int], *, full: bool = False) -> dict[int, int]:
    """The size of each of the tracks within another resource, or, with `full`, by itself."""
    among, values = dialect.in_list(track_ids)
    statement = (OF_TRACKS + OF_WORDS * full).format(
        among=among,
        track=TRACK + FULL_TRACK * full,
        t_fields=_fields("t.name", "t.release_date", "t.description"),
        image=_text("COALESCE(t.image, a.image)"),
        artist=_artist(),
        genre=f"{GENRE} + {_fields('g.name', 'g.display_name')}",
        tag=f"{TAG} + {_fields('g.name')}",
    )
    found: dict[int, int] = defaultdict(int)
    for track_id, size in fetch(statement, *[values] * (4 if full else 2)):
        found[track_id] += int(size)
    return found


def _artist() -> str:
    return f"{ARTIST} + {_fields('a.name', 'a.image_small')}"


def _fields(*columns: str) -> str:
    """The bytes of these columns together."""
    return " + ".join(map(_text, columns))


def _text(column: str) -> str:
    """The bytes of a column as JSON."""
    if is_sqlite():
        return f"OCTET_LENGTH(JSON_QUOTE({column}))"
    return f"COALESCE(OCTET_LENGTH(TO_JSON({column})::text), {NULL})"
