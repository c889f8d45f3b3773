"""The album artist comes first among the artists of an album, whichever row of the file names it."""

from pathlib import Path

import pytest

from musicsvc.store.catalog import albums
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Album
from tests.support.bounds import Bounds
from tests.support.import_files import import_file


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
