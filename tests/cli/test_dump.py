"""`musicsvc plays dump`: the rows of all files, and a manifest that names them."""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from musicsvc.clock import DAY, isoformat
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AlbumArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.cli.conftest import Json, Run
from tests.conftest import NOW
from tests.support.reported_plays import world

PLAYS = "SELECT track_id, played_at, duration_ms, listener_id FROM play"
# Of the database, then of the files.
TABLES = {
    "tracks": ("SELECT id, name, duration, album_id FROM track", "track_id, name, duration_ms, album_id"),
    "track_artists": ("SELECT track_id, artist_id, position FROM track_artist", "*"),
    "albums": ("SELECT id, name, release_date FROM album", "album_id, name, release_date::VARCHAR"),
    "album_artists": ("SELECT album_id, artist_id, position FROM album_artist", "*"),
    "artists": ("SELECT id, name FROM artist", "artist_id, name"),
}


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())


def rows(files: str, columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of Parquet files in the order in which they are stored."""
    with duckdb.connect(":memory:") as connection:
        return connection.sql(f"SELECT {columns} FROM read_parquet('{files}')").fetchall()


def stored(store: Store, statement: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, store.read(lambda: fetch(statement)).result()), key=repr)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(4)


@pytest.fixture
def played(store: Store, chance: random.Random) -> int:
    """Create 700 plays on six of ten days. Return their number after repeats."""

    def fill() -> int:
        world()
        AlbumArtist.create(album=1, artist=1, position=0)
        people = [*listeners.ensure(f"opaque:fan-{number}" for number in range(60)).values()]
        return ingest.record(play(chance, people) for _ in range(700))

    return store.write(fill).result()


def play(chance: random.Random, people: Sequence[int]) -> PlayRow:
    at = NOW - chance.choice((0, 1, 2, 5, 8, 9)) * DAY - chance.randrange(DAY // 2)
    heard = chance.choice((None, 0, chance.randrange(400_000)))
    return PlayRow(at // SLOT, chance.choice((1, 1, 2, 3)), chance.choice(people), WITHOUT_ID, at, heard, 0)


def test_a_dump_has_all_plays_and_tables_and_the_manifest_names_its_files(
    ask: Json, store: Store, played: int, tmp_path: Path
) -> None:
    folder = tmp_path / "dump"
    done = ask("plays", "dump", "--output", str(folder))
    plays = stored(store, PLAYS)
    assert len(plays) == played > 600
    dumped = rows(f"{folder}/plays/*/*.parquet", "track_id, epoch_us(played_at), duration_ms, listener")
    assert sorted(dumped, key=repr) == plays
    assert set(rows(f"{folder}/plays/*/*.parquet", "day = played_at::DATE")) == {(True,)}
    for table, (statement, columns) in TABLES.items():
        assert sorted(rows(f"{folder}/tables/{table}.parquet", columns), key=repr) == stored(store, statement) != []
    found = manifest(folder)
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.parquet")}
    assert {each["path"]: (each["bytes"], each["sha256"]) for each in found["files"]} == {
        path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in files.items()
    }
    assert sum(each["rows"] for each in found["files"] if each["path"].startswith("plays/")) == len(plays)
    assert (found["schema_version"], found["complete_from"]) == (1, None)
    assert found["last_play"] == done["last_play"] == isoformat(max(at for _, at, *_ in plays))
    assert (done["plays"], len(done["written"]), done["removed"]) == (len(plays), len(files), [])


@pytest.mark.usefixtures("played")
def test_a_second_run_writes_nothing(ask: Json, run: Run, tmp_path: Path) -> None:
    first = ask("plays", "dump", "--output", str(tmp_path / "dump"))
    files = manifest(tmp_path / "dump")["files"]
    second = ask("plays", "dump", "--output", str(tmp_path / "dump"))
    assert (second["written"], second["plays"]) == ([], first["plays"])
    assert manifest(tmp_path / "dump")["files"] == files
    run("plays", "dump", "--output", str(tmp_path / "other"))
    assert manifest(tmp_path / "other")["files"] == files
