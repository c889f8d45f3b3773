"""A second run of `import catalog` changes nothing, for any rows, batches and order."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog import albums, genres
from musicsvc.store.editing import assignments, merging, splitting
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions, Kind
from musicsvc.store.importing.summary import Counts, ImportSummary
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, AlbumArtist, Artist, Genre, Tag, Track, TrackArtist
from tests.support.bounds import Bounds
from tests.support.catalog_import import counts, dump, import_rows
from tests.support.examples import examples
from tests.support.import_files import Rows, import_file
from tests.support.refused_rows import reasons

often = settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
names = some.sampled_from(["a", "b", "c"])
ANN = "ann@a.test"
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


# A dry run is the import, rolled back: it writes nothing, and others can write meanwhile.

ROWS = 24


@pytest.fixture
def songs(tmp_path: Path, bounds: Bounds) -> Path:
    """Return a file of tracks by one artist, to be imported in batches of ten rows."""
    bounds(rows_a_unit=10)
    file = tmp_path / "songs.csv"
    file.write_text("track,artist,bpm\n" + "".join(f"T{number},A,{number}\n" for number in range(ROWS)))
    return file


def tried(store: Store, file: Path) -> ImportSummary:
    return import_file(store, file, Catalog(ImportOptions(dry_run=True)))


def test_a_long_dry_run_is_rolled_back_in_parts_and_says_that_names_may_be_counted_twice(
    store: Store, songs: Path, bounds: Bounds
) -> None:
    empty = dump(store)
    whole = tried(store, songs)
    assert (whole.at_most, whole.counts["artists"], whole.rows) == (False, Counts(1, repeated=ROWS - 1), ROWS)
    bounds(longest_trial=0)
    parts = tried(store, songs)
    assert (parts.at_most, parts.counts["artists"], parts.rows) == (True, Counts(3, repeated=ROWS - 3), ROWS)
    assert (parts.counts["tracks"], parts.notes) == (whole.counts["tracks"], whole.notes)
    assert dump(store) == empty
    assert store.read(runs.newest).result() == []


@pytest.mark.slow
def test_others_write_between_the_parts_of_a_dry_run(store: Store, store_url: str, songs: Path, bounds: Bounds) -> None:
    bounds(longest_trial=0.5)
    songs.write_text("track,artist\n" + "".join(f"T{number},A\n" for number in range(4_000)))
    waits: list[float] = []
    ended = threading.Event()

    def write() -> None:
        with opening.connect(store_url) as other:
            while not ended.wait(0.02):
                began = time.monotonic()
                other.write(partial(genres.ensure_tags, [f"{began}"])).result()
                waits.append(time.monotonic() - began)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert tried(store, songs).counts["tracks"].new == 4_000
    finally:
        ended.set()
        writer.join()
    assert max(waits) < 5


def test_a_transaction_that_runs_again_counts_its_rows_once(
    store: Store, songs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tried(store, songs)
    written = Catalog.write
    faults: Iterator[bool] = iter([False, True])

    def write(self: Catalog, *arguments: object) -> object:
        if next(faults, False):
            raise LookupError
        return written(self, *arguments)  # type: ignore[arg-type]

    def again(unit: object) -> object:
        with pytest.raises(LookupError):
            original(unit).result()  # type: ignore[arg-type]
        return original(unit)  # type: ignore[arg-type]

    original = store.write
    monkeypatch.setattr(Catalog, "write", write)
    monkeypatch.setattr(store, "write", again)
    assert tried(store, songs) == whole


def test_a_damaged_file_ends_a_dry_run_with_what_was_refused_before(store: Store, songs: Path) -> None:
    songs.write_bytes(songs.read_bytes().replace(b"T3,", b",") + "宇多田,A,1\n".encode("shift_jis"))
    seen: list[ImportSummary] = []
    with pytest.raises(Failure, match="not UTF-8"):
        import_file(store, songs, Catalog(ImportOptions(dry_run=True)), on_progress=seen.append)
    assert [(row.line, row.reason) for row in seen[-1].refused] == [
        (5, "track is missing; bpm must be between 20 and 400")
    ]
    assert seen[-1].rows == 20


# The album artist comes first among the artists of an album, whichever row of the file names it.


@pytest.mark.parametrize("rows_a_batch", [1, 2, 500])
@pytest.mark.parametrize("dry_run_before", [False, True])
def test_an_album_lists_its_album_artist_first(
    store: Store, tmp_path: Path, bounds: Bounds, rows_a_batch: int, dry_run_before: bool
) -> None:
    bounds(rows_a_unit=rows_a_batch)
    rows = [
        {"track": "A", "artist": "Ann;Bea"},
        {"track": "B", "artist": "Cleo"},
        {"track": "C", "artist": "Dora;Bea", "album_artist": "Bea;Various"},
        {"track": "D", "artist": "Ann", "album_artist": "Late"},
    ]
    file = tmp_path / "songs.jsonl"
    named = [row | {"album": "One", "album_external_id": "1"} for row in rows]

    def run(*, dry_run: bool) -> tuple[int, int]:
        counts = import_file(store, file, Catalog(ImportOptions(dry_run=dry_run)), named).counts
        return counts["albums"].new, counts["albums"].changed

    if dry_run_before:
        assert run(dry_run=True) == (1, 0)
    assert run(dry_run=False) == (1, 0)
    (album,) = store.read(lambda: albums.with_contents(albums.find([Album.get().id]))).result()
    names = ["Bea", "Various", "Ann", "Cleo", "Dora", "Late"]
    assert [artist.name for artist in album.artists] == names
    assert run(dry_run=False) == (0, 0)
    (album,) = store.read(lambda: albums.with_contents(albums.find([Album.get().id]))).result()
    assert [artist.name for artist in album.artists] == names


def test_a_file_changes_nothing_that_went_to_another_manager(store: Store, tmp_path: Path) -> None:
    ann, bob = (store.write(partial(users.create, f"{name}@a.test", now=1)).result() for name in ("ann", "bob"))
    imported = partial(import_rows, store, tmp_path / "rows.jsonl", user=ANN)
    row = {"track": "T", "artist": "Trio", "external_id": "t", "isrc": "GBAYE6800011"}
    on_album = {**row, "track": "U", "external_id": "u", "isrc": None, "album": "X", "album_external_id": "x"}
    duo = {**row, "artist": "Trio; Duo", "external_id": "d", "isrc": None}
    imported([row, on_album, duo])
    trio = store.read(lambda: Artist.get(Artist.name == "Trio").id).result()
    store.write(lambda: assignments.assign(trio, bob, now=2)).result()
    before = dump(store)
    told = "another account manages the {} with this external id now: {}"
    alone = {**on_album, "album": None, "album_external_id": None}
    summary = imported([{**row, "track": "Mine"}, {**on_album, "label": "Mine"}, alone])
    named = enumerate((("track", "t"), ("album", "x"), ("track", "u")), 1)
    assert reasons(summary) == [(line, told.format(*each)) for line, each in named]
    assert dump(store) == before
    # What is Ann's still, by another artist, and the same recording of an artist of hers.
    summary = imported([{**duo, "track": "Mine"}, {**row, "external_id": None}])
    assert counts(summary) == (1, 1, 0, 0)
    store.write(lambda: assignments.assign(trio, ann, now=3)).result()
    assert counts(imported([{**row, "isrc": None, "bpm": 90}])) == (0, 1, 0, 0)


def test_a_file_changes_nothing_of_others_whose_numbers_and_codes_are_alike(store: Store, tmp_path: Path) -> None:
    ann, bob = (store.write(partial(users.create, f"{name}@a.test", now=1)).result() for name in ("ann", "bob"))
    imported = partial(import_rows, store, tmp_path / "rows.jsonl")
    first: dict[str, object] = {"track": "T", "artist": "Trio", "external_id": "1", "isrc": "GBAYE6800011"}
    rows = [first, {**first, "external_id": "2", "isrc": None}]
    imported(rows, user="bob@a.test")
    kept, doubled = store.read(lambda: [row.id for row in Track.select().order_by(Track.id)]).result()
    store.write(lambda: merging.merge("track", doubled, kept, now=2)).result()  # so that more names lead to the first
    before = dump(store)
    # What Ann numbers like Bob, and what has the name of the one and the ISRC of the other.
    assert counts(imported(rows, user=ANN)) == (2, 0, 0, 0)
    loose = {"track": "T", "artist": "Solo", "isrc": "GBAYE6800022"}
    imported([loose, {**first, "external_id": None, "artist": "Solo", "bpm": 90}], user=ANN)
    after = dump(store)
    assert [set(before[table]) - set(after[table]) for table in before] == [set()] * len(before)
    # The parts of an artist of hers, of which the first is Bob's now, and he has an album of that name.
    imported([{"track": "V", "artist": "Duo"}], user=ANN)
    named = {each.name: each.id for each in store.read(lambda: list(Artist.select())).result()}
    store.write(lambda: splitting.split(named["Duo"], ["Una", "Dos"], now=3)).result()
    una = store.read(lambda: Artist.get(Artist.name == "Una").id).result()
    store.write(lambda: assignments.assign(una, bob, now=4)).result()
    imported([{"track": "W", "artist": "Una", "album": "Y"}], user="bob@a.test")
    before = dump(store)
    imported([{"track": "W", "artist": "Duo", "album": "Y", "label": "Mine"}], user=ANN)
    after = dump(store)
    assert [set(before[table]) - set(after[table]) for table in before] == [set()] * len(before)
    # A track that was Bob's and had that number in his file, found by its ISRC beside what has the number in hers.
    his = {**first, "external_id": "9", "isrc": "GBAYE6800033", "artist": "Una"}
    imported([his], user="bob@a.test")
    store.write(lambda: assignments.assign(una, ann, now=5)).result()
    found = imported([{**his, "external_id": None}, {"track": "N", "artist": "Solo", "external_id": "9"}], user=ANN)
    assert counts(found) == (1, 0, 1, 0)
