"""A second run of `import catalog` changes nothing, for any rows, batches and order."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.store.engine.store import Store
from musicsvc.store.importing.runner import Kind
from musicsvc.store.models import Album, AlbumArtist, Artist, Genre, Tag, Track, TrackArtist
from tests.support.catalog_import import counts, dump, import_rows
from tests.support.examples import examples
from tests.support.import_files import Rows

often = settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
names = some.sampled_from(["a", "b", "c"])
row_like = some.fixed_dictionaries(
    {"track": names, "artist": some.lists(names, min_size=1, max_size=3)},
    optional={
        "external_id": names,
        "album": names,
        "album_external_id": names,
        "bpm": some.sampled_from([60, 90]),
        "release_date": some.sampled_from(["1999", "2001-02"]),
        "genre": names,
        "tags": some.lists(names, max_size=2),
    },
)


def clear(store: Store) -> None:
    def unit() -> None:
        for table in (Track, Album, Artist, Genre, Tag):
            table.delete().execute()

    store.write(unit).result()


def namesakes(store: Store) -> bool:
    """Whether two albums or two tracks have the same name for rows without an external id.

    An external id can give an album the name of another one. Which of the two a row without an id means is whatever
    the import finds at that moment.
    """

    def read() -> bool:
        first: dict[int, int] = {}
        for credit in AlbumArtist.select().where(AlbumArtist.position == 0):
            first[credit.album] = credit.artist
        by: dict[int, set[int]] = {}
        for link in TrackArtist.select():
            by.setdefault(link.track, set()).add(link.artist)
        found: list[Any] = [(first.get(row.id), row.name) for row in Album.select()]
        found += [(frozenset(by[row.id]), row.name, row.album) for row in Track.select()]
        return len(set(found)) < len(found)

    return store.read(read).result()


@pytest.mark.slow
@often
@given(earlier=some.lists(row_like, max_size=6), rows=some.lists(row_like, max_size=12), size=some.integers(1, 13))
def test_whatever_the_rows_and_the_batches_a_dry_run_is_right_and_a_second_run_changes_nothing(
    store: Store, tmp_path: Path, earlier: Rows, rows: Rows, size: int
) -> None:
    file = tmp_path / "rows.jsonl"
    clear(store)
    import_rows(store, file, earlier)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kind, "rows_a_unit", size)
        dry = import_rows(store, file, rows, dry_run=True)
        first = import_rows(store, file, rows)
        before = dump(store)
        ambiguous = namesakes(store)
        again = import_rows(store, file, rows)
    assert dry.counts == first.counts
    if not ambiguous:
        assert dump(store) == before
        assert [counts(again, kind)[:2] for kind in again.counts] == [(0, 0)] * 4


# What every row of a file says of one track; fields, genres and tags are on some of its rows.
AGREED: list[dict[str, str]] = [
    {"track": "T", "artist": "A;B", "album": "X", "external_id": "t", "album_external_id": "x"},
    {"track": "T", "artist": "B", "album": "X", "external_id": "u", "album_external_id": "x"},
    {"track": "U", "artist": "C;A", "album": "Y"},
    {"track": "U", "artist": "A", "album": "Y"},
    {"track": "V", "artist": "C"},
]
words = some.sets(some.sampled_from(["Pop", "Rock", "Jazz"]), max_size=2).map(sorted)
fields = some.sets(some.sampled_from(["bpm", "release_date", "image"]))


def agreed(number: int, given: set[str], genres: list[str], tags: list[str]) -> dict[str, Any]:
    """Draw a row about one of the tracks; an album has the date and the image of its tracks."""
    values = {"bpm": 60 + number, "release_date": f"200{number // 2}", "image": f"http://a/{number // 2}"}
    return AGREED[number] | {name: values[name] for name in given} | {"genre": genres, "tags": tags}


@pytest.mark.slow
@settings(often, max_examples=examples(30))
@given(
    rows=some.lists(some.builds(agreed, some.integers(0, len(AGREED) - 1), fields, words, words), max_size=12),
    size=some.integers(1, 13),
    data=some.data(),
)
def test_the_same_rows_in_another_order_change_nothing(
    store: Store, tmp_path: Path, rows: list[dict[str, Any]], size: int, data: some.DataObject
) -> None:
    clear(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kind, "rows_a_unit", size)
        import_rows(store, tmp_path / "rows.jsonl", rows)
        before = dump(store)
        again = import_rows(store, tmp_path / "rows.jsonl", data.draw(some.permutations(rows)))
    assert dump(store) == before
    assert [counts(again, kind)[:2] for kind in again.counts] == [(0, 0)] * 4


def test_a_row_without_an_external_id_means_the_one_without_or_else_the_oldest(store: Store, tmp_path: Path) -> None:
    album, track = {"track": "T", "artist": "A", "album": "X"}, {"track": "S", "artist": "A"}
    numbered = [album | {"album_external_id": each} for each in "xy"] + [track | {"external_id": each} for each in "tu"]

    def met() -> tuple[list[str | None], list[int | None]]:
        albums, tracks = Album.select().order_by(Album.id), Track.select().where(Track.name == "S").order_by(Track.id)
        return [row.release_date for row in albums], [row.bpm for row in tracks]

    def make() -> None:
        artist = Artist.get(Artist.name == "A").id
        AlbumArtist.create(album=Album.create(name="X", created_at=1), artist=artist, position=0)
        TrackArtist.create(track=Track.create(name="S", duration=1, created_at=1), artist=artist, position=0)

    file = tmp_path / "rows.jsonl"
    import_rows(store, file, numbered)
    import_rows(store, file, [album | {"release_date": "2001-01-01"}, track | {"bpm": 61}])
    assert store.read(met).result() == (["2001-01-01", None], [61, None])
    store.write(make).result()
    import_rows(store, file, [album | {"release_date": "2003-03-03"}, track | {"bpm": 63}])
    assert store.read(met).result() == (["2001-01-01", None, "2003-03-03"], [61, None, 63])
