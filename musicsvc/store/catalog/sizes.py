"""Upper bounds for the JSON sizes of artists, albums and tracks, computed in SQL before any rows are loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import cache
from operator import add, sub
from typing import NamedTuple

import orjson

from musicsvc.store.engine import dialect
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sql import fetch

# The limits of an album, so that a page of 20 fits into a response of 16 MiB.
MOST_TRACKS = 1000
LARGEST_ALBUM = 768 * 1024

# The bytes of each JSON object without its texts, including the comma that follows it.
ARTIST = len('{"id":1234567890,"name":,"image_small":,"verified":false},')
TRACK = len('{"id":1234567890,"name":,"release_date":,"image":,"duration":1234567890,"description":,"artists":[]},')
ALBUM = len(
    '{"id":1234567890,"name":,"image":,"release_date":,"description":,"tracks":[],"artists":[],"model_type":"album",'
    '"created_at":"2026-01-31T12:00:00.000000Z","plays":9223372036854775807,"upc":,"label":},'
)

ALBUM_SIZES = """
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


class AlbumSize(NamedTuple):
    """The JSON size of an album in bytes. Each of its `imageless` tracks repeats the album image (`image` bytes).

    `own` is the size of everything else.
    """

    tracks: int  # their number
    imageless: int  # the number of tracks that repeat the album image
    own: int
    image: int

    def plus(self, other: AlbumSize) -> AlbumSize:
        return AlbumSize(*map(add, self, other))

    def minus(self, other: AlbumSize) -> AlbumSize:
        return AlbumSize(*map(sub, self, other))

    @property
    def total(self) -> int:
        return self.own + self.imageless * self.image

    @property
    def excess(self) -> str:
        """An error message if the album has too many tracks or JSON bytes, else an empty string."""
        if self.tracks > MOST_TRACKS:
            return f"An album holds at most {MOST_TRACKS:,} tracks."
        if self.total > LARGEST_ALBUM:
            return f"An album with its tracks takes at most {LARGEST_ALBUM // 1024} KiB as JSON."
        return ""


EMPTY = AlbumSize(0, 0, 0, 0)
NULL = len("null")
NEW_ALBUM = AlbumSize(0, 0, ALBUM + 6 * NULL, NULL)  # without the bytes of its name


def measure_text(value: str | None) -> int:
    """Return the size of a text as JSON, in bytes."""
    return len(orjson.dumps(value))


def new_artist(name: str) -> int:
    """Return the JSON size, in bytes, of an artist with this name and no image."""
    return ARTIST + measure_text(name) + NULL


def measure_albums(album_ids: Collection[int]) -> dict[int, AlbumSize]:
    among, values = dialect.in_list(album_ids)
    found: dict[int, AlbumSize] = defaultdict(lambda: EMPTY)
    for album_id, *more in fetch(_album_sizes(among), *[values] * 4):
        found[album_id] = found[album_id].plus(AlbumSize(*map(int, more)))
    return found


@cache
def _album_sizes(among: str) -> str:
    """Return SQL that computes the JSON sizes of albums. `among`: SQL condition on their ids, such as `= ANY(?)`."""
    return ALBUM_SIZES.format(
        among=among,
        album=ALBUM,
        a_fields=_fields("a.name", "a.release_date", "a.description", "a.upc", "a.label"),
        a_image=_text("a.image"),
        track=TRACK,
        t_fields=_fields("t.name", "t.release_date", "t.description"),
        t_image=_text("t.image"),
        artist=_artist(),
    )


def measure_artists(artist_ids: Collection[int]) -> dict[int, int]:
    """Return artist id → size in bytes of the artist's JSON inside the JSON of an album or track."""
    among, values = dialect.in_list(artist_ids)
    return dict(fetch(f"SELECT a.id, {_artist()} FROM artist a WHERE a.id {among}", values))  # noqa: S608 - constants


def _artist() -> str:
    return f"{ARTIST} + {_fields('a.name', 'a.image_small')}"


def _fields(*columns: str) -> str:
    """Return an SQL expression for the total JSON size of the columns, in bytes."""
    return " + ".join(map(_text, columns))


def _text(column: str) -> str:
    """Return an SQL expression for the JSON size of a column, in bytes."""
    if is_sqlite():
        return f"OCTET_LENGTH(JSON_QUOTE({column}))"
    return f"COALESCE(OCTET_LENGTH(TO_JSON({column})::text), {NULL})"
