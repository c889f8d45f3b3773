"""The upgrade that makes the triggers of SQLite do less, on a database with a long list and changes of the catalog."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from musicsvc.store import opening
from musicsvc.store.catalog import changes
from musicsvc.store.engine import bulk, list_blocks
from musicsvc.store.engine.sql import fetch
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.schema import history, schema
from tests.conftest import NOW

BLOCKS = "SELECT list, size FROM list_block ORDER BY list, first_key"
LONGEST = list_blocks.LONGEST


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # PostgreSQL has no such triggers
def test_long_lists_are_divided_and_changes_told_as_before(new_database: Callable[..., str], tmp_path: Path) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available():
        if name < "0013":
            shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with opening.open_unchecked(url) as store:
        store.write(lambda: Artist.create(name="Ann", created_at=NOW)).result()
        store.write(lambda: _add(1, LONGEST + 300)).result()
        before = store.read(lambda: changes.since(None)).result().cursor
        sizes = store.read(lambda: fetch(BLOCKS)).result()
    assert schema.upgrade(url)[-1] >= "0013"
    with opening.connect(url) as store:
        assert store.read(lambda: fetch(BLOCKS)).result() == sizes
        store.write(lambda: _add(LONGEST + 301, 5000)).result()
        rows, _, more = store.read(lambda: changes.since(before)).result()
        assert more
        assert rows[0] == changes.Changed("track", LONGEST + 301, "created", None)
        for of, owner in ((list_blocks.TRACKS, 0), (list_blocks.ARTIST_TRACKS, 1)):
            assert store.read(partial(of.total, owner)).result() == LONGEST + 5300
        found = [size for _, size in store.read(lambda: fetch(BLOCKS)).result()]
        assert len(found) > len(sizes) >= 2
        assert max(found) <= LONGEST
        assert store.read(list_blocks.differences).result() == []
        store.write(lambda: TrackArtist.delete().where(TrackArtist.track > LONGEST).execute()).result()
        kept = [
            size
            for number, size in store.read(lambda: fetch(BLOCKS)).result()
            if number == list_blocks.ARTIST_TRACKS.number
        ]
        assert (min(kept) > 0, sum(kept)) == (True, LONGEST)
        assert store.read(list_blocks.differences).result() == []
        assert store.read(schema.problems).result() == []


def _add(first: int, count: int) -> None:
    ids = range(first, first + count)
    bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, f"Song {each}", 1, NOW) for each in ids])
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, 1, 0) for each in ids])
