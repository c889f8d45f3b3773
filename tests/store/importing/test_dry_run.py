"""A dry run is the import, rolled back: it writes nothing, and others can write meanwhile."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.catalog import genres
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import Counts, ImportSummary
from musicsvc.store.importing.undoing import runs
from tests.support.bounds import Bounds
from tests.support.catalog_import import dump
from tests.support.import_files import import_file

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
    assert store.read(runs.list_all).result() == []


def test_others_write_between_the_parts_of_a_dry_run(store: Store, store_url: str, songs: Path, bounds: Bounds) -> None:
    bounds(longest_trial=0.5)
    songs.write_text("track,artist\n" + "".join(f"T{number},A\n" for number in range(4_000)))
    waits: list[float] = []
    ended = threading.Event()

    def write() -> None:
        with opening.connect(store_url) as other:
            while not ended.is_set():
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
    songs.write_bytes(songs.read_bytes().replace(b"T3,", b",") + b"\xff,A,1\n")
    seen: list[ImportSummary] = []
    with pytest.raises(Failure, match="not UTF-8"):
        import_file(store, songs, Catalog(ImportOptions(dry_run=True)), on_progress=seen.append)
    assert [(row.line, row.reason) for row in seen[-1].refused] == [(5, "track is missing")]
    assert seen[-1].rows == 20
