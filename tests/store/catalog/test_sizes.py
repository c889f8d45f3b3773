"""SQL measures the size of albums and tracks as JSON before they are loaded."""

from typing import Any

import orjson

from musicsvc.server.shapes import catalog
from musicsvc.store.catalog import albums, genres, sizes, tags, tracks
from musicsvc.store.engine import bulk
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, TrackGenre, TrackTag

# Every kind of character that JSON escapes, and every length that UTF-8 has.
NASTY = "".join(map(chr, (*range(1, 0x180), 0x2028, 0x20AC))) + '🎵"\\/'
LINK = "https://images.example.test/é.jpg"
COMMAS = 8  # bytes: one is counted after the last entry of each list, too
WIDEST = {"id": 10**9, "duration": 10**9, "plays": 10**18, "verified": False}


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
    words = [(1, each) for each in genres.ensure(["Neo-Soul", "Été" * 20]).values()]
    bulk.insert(TrackGenre, ("track", "genre"), [*words, (2, words[0][1])])
    bulk.insert(TrackTag, ("track", "tag"), [(1, each) for each in tags.ensure(["\x01" * 60, "quiet"]).values()])


PEOPLE = [("Amy Beach", None), (NASTY[:255], LINK), ("古琴", f"{LINK}?{'x' * 900}")]


def widened(value: Any) -> Any:
    """Return the JSON value with every number at its measured length."""
    if isinstance(value, list):
        return [widened(each) for each in value]
    return {key: WIDEST.get(key, widened(each)) for key, each in value.items()} if isinstance(value, dict) else value


def test_an_album_is_as_large_as_it_was_measured(store: Store) -> None:
    store.write(fill).result()
    rows = store.read(lambda: albums.list_all(Page()).rows).result()
    measured = store.read(lambda: albums.measure(rows)).result()
    shapes = [catalog.album_full(row) for row in store.read(lambda: albums.with_contents(rows)).result()]
    for shape, size in zip(shapes, measured, strict=True):
        assert 0 <= size - len(orjson.dumps(widened(shape))) <= COMMAS
    assert [len(shape["tracks"]) for shape in shapes] == [0, 1, 3]
    parts = store.read(lambda: sizes.measure_albums([1])).result()[1]
    assert (parts.tracks, parts.imageless, parts.image) == (3, 2, len(orjson.dumps(LINK)))


def test_a_track_is_as_large_as_it_was_measured(store: Store) -> None:
    store.write(fill).result()
    ids = [4, 1, 2, 5, 1, 3]
    rows = store.read(lambda: tracks.find(ids)).result()
    nested = store.read(lambda: tracks.measure_nested(ids)).result()
    for row, size in zip(rows, nested, strict=True):
        assert 0 <= size - len(orjson.dumps(widened(catalog.track_nested(row)))) <= COMMAS
    whole = store.read(lambda: tracks.complete(rows)).result()
    assert [len(row.genres) for row in whole] == [0, 2, 1, 0, 2, 0]
    for row, size in zip(whole, store.read(lambda: tracks.measure(rows)).result(), strict=True):
        left = size - len(orjson.dumps(catalog.track_full(row)))
        assert 0 <= left <= sizes.FULL_TRACK


def test_every_genre_and_tag_of_a_track_is_measured(store: Store) -> None:
    store.write(fill).result()
    ids = [1, 2, 3]
    rows = store.read(lambda: tracks.find(ids)).result()
    nested = store.read(lambda: sizes.measure_tracks(ids)).result()
    whole = store.read(lambda: sizes.measure_tracks(ids, full=True)).result()
    shapes = [catalog.track_full(row) for row in store.read(lambda: tracks.complete(rows)).result()]
    labels = {shape["id"]: [*shape["genres"], *shape["tags"]] for shape in shapes}
    assert [len(labels[each]) for each in ids] == [4, 1, 0]
    for each, some in labels.items():
        listed = sum(len(orjson.dumps(widened(label))) + len(",") for label in some)
        assert whole[each] - nested[each] - listed == whole[3] - nested[3]


def test_parts_of_equal_size_are_all_counted(store: Store) -> None:
    """Each album has one track, and both have the same artist, whose name gets longer by a byte from one to the next.

    So the artist takes as many bytes as the track, the genre and the tag, one after the other.
    """
    names = ["x" * length for length in range(1, 100)]

    def fill() -> list[int]:
        ids = range(1, 1 + len(names))
        bulk.insert(Artist, ("id", "name", "created_at"), [(each, names[each - 1], 1) for each in ids])
        bulk.insert(Album, ("id", "name", "created_at"), [(each, "a", 1) for each in ids])
        bulk.insert(Track, ("id", "name", "album", "duration", "created_at"), [(each, "t", each, 1, 1) for each in ids])
        bulk.insert(AlbumArtist, ("album", "artist", "position"), [(each, each, 0) for each in ids])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, each, 0) for each in ids])
        genre, tag = genres.ensure(["Neo-Soul"]).values(), tags.ensure(["y" * 60]).values()
        bulk.insert(TrackGenre, ("track", "genre"), [(each, *genre) for each in ids])
        bulk.insert(TrackTag, ("track", "tag"), [(each, *tag) for each in ids])
        return list(ids)

    ids = store.write(fill).result()
    nested = store.read(lambda: sizes.measure_tracks(ids)).result()
    whole = store.read(lambda: sizes.measure_tracks(ids, full=True)).result()
    measured = store.read(lambda: sizes.measure_albums(ids)).result()
    around = {nested[each] - each for each in ids}, {whole[each] - each for each in ids}
    assert [len(each) for each in around] == [1, 1]
    assert len({measured[each].total - 2 * each for each in ids}) == 1


def test_the_size_of_an_album_counts_its_image_for_each_track_without_one() -> None:
    assert sizes.AlbumSize(tracks=3, imageless=2, own=10, image=5).total == 20
