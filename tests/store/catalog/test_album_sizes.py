"""The size of an album as JSON, as the limit on albums counts it."""

from typing import Any

import orjson

from musicsvc.server.shapes import catalog
from musicsvc.store.catalog import album_sizes, albums
from musicsvc.store.engine import bulk
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist

# Every kind of character that JSON escapes, and every length that UTF-8 has.
NASTY = "".join(map(chr, (*range(1, 0x180), 0x2028, 0x20AC))) + '🎵"\\/'
LINK = "https://images.example.test/é.jpg"
COMMAS = 8  # bytes: one is counted after the last entry of each list, too
WIDEST = {"id": 10**9, "plays": 10**18, "verified": False}


def fill() -> None:
    """Album 1 with three tracks by several artists, album 2 with one and no image, album 3 with none."""
    artists = [Artist.create(name=name, image_small=image, verified=True, created_at=1).id for name, image in PEOPLE]
    made = [Album.create(name=f"{at}{NASTY[:200]}", created_at=1).id for at in range(3)]
    Album.update(image=LINK, description=NASTY, release_date="1899-09-18").where(Album.id == made[0]).execute()
    bulk.insert(AlbumArtist, ("album", "artist", "position"), [(made[0], each, at) for at, each in enumerate(artists)])
    for album, image, description, by in (
        (made[0], None, None, artists),
        (made[0], LINK * 3, NASTY, artists[1:]),
        (made[0], None, NASTY * 3, artists[:1]),
        (made[1], None, "", artists[2:]),
        (None, None, NASTY, artists),
    ):
        track = Track.create(
            name=NASTY[:99], album=album, image=image, description=description, duration=86_400_000, created_at=1
        )
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(track.id, each, at) for at, each in enumerate(by)])


PEOPLE = [("Amy Beach", None), (NASTY[:255], LINK), ("古琴", f"{LINK}?{'x' * 900}")]


def widened(value: Any) -> Any:
    """Return the JSON value as long as the parts of it can become that change while the album stays the same."""
    if isinstance(value, list):
        return [widened(each) for each in value]
    return {key: WIDEST.get(key, widened(each)) for key, each in value.items()} if isinstance(value, dict) else value


def test_an_album_is_as_large_as_it_was_measured(store: Store) -> None:
    store.write(fill).result()
    rows = store.read(lambda: albums.with_contents(albums.list_all(Page()).rows)).result()
    measured = store.read(lambda: album_sizes.measure([row.id for row in rows])).result()
    shapes = {row.id: catalog.album_full(row) for row in rows}
    for album_id, shape in shapes.items():
        assert 0 <= measured[album_id].bytes - len(orjson.dumps(widened(shape))) <= COMMAS
    tracks = {album_id: len(shape["tracks"]) for album_id, shape in shapes.items()}
    assert tracks == {album_id: size.tracks for album_id, size in measured.items()} == {1: 3, 2: 1, 3: 0}
