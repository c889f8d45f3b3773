"""Plays that are dumped, and the content of dumps."""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AlbumArtist
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.conftest import NOW
from tests.support.reported_plays import world

PLAYED = (0, 1, 2, 5, 8, 9)  # days ago
STORED = "SELECT track_id, played_at, duration_ms, listener_id FROM play"
# Of the database, then of the files.
TABLES = {
    "tracks": ("SELECT id, name, duration, album_id FROM track", "track_id, name, duration_ms, album_id"),
    "track_artists": ("SELECT track_id, artist_id, position FROM track_artist", "*"),
    "albums": ("SELECT id, name, release_date FROM album", "album_id, name, release_date::VARCHAR"),
    "album_artists": ("SELECT album_id, artist_id, position FROM album_artist", "*"),
    "artists": ("SELECT id, name FROM artist", "artist_id, name"),
}
Rows = list[tuple[Any, ...]]


def fill(chance: random.Random, count: int) -> int:
    """Create a catalog, and `count` plays on six of ten days. Return the number of those that are no repeats."""
    world()
    AlbumArtist.create(album=1, artist=1, position=0)
    people = [*listeners.ensure(f"opaque:fan-{number}" for number in range(60)).values()]
    return record(play(chance, people) for _ in range(count))


def record(plays: Iterable[PlayRow]) -> int:
    counting.lock()
    return ingest.record(plays)


def play(chance: random.Random, people: Sequence[int], reporter: int = 0) -> PlayRow:
    at = NOW - chance.choice(PLAYED) * DAY - chance.randrange(DAY // 2)
    heard = chance.choice((None, 0, chance.randrange(400_000)))
    return PlayRow(at // SLOT, chance.choice((1, 1, 2, 3)), chance.choice(people), WITHOUT_ID, at, heard, reporter)


def stored(store: Store, statement: str = STORED) -> Rows:
    """Return rows of the database, sorted."""
    return in_order(map(tuple, store.read(lambda: fetch(statement)).result()))


def plays(folder: Path) -> Rows:
    """Return the plays of a dump, sorted."""
    return in_order(rows(f"{folder}/plays/*/*.parquet", "track_id, epoch_us(played_at), duration_ms, listener"))


def in_order(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return sorted(rows, key=repr)


def rows(files: str, columns: str = "*") -> Rows:
    """Return the rows of Parquet files in the order in which they are stored."""
    with duckdb.connect(":memory:") as connection:
        return connection.sql(f"SELECT {columns} FROM read_parquet('{files}')").fetchall()


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())


def files(folder: Path) -> dict[str, bytes]:
    """Return all files of a dump but the manifest, by path."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }


def require_valid(folder: Path) -> None:
    """Compare the manifest with the files, of which there are no others."""
    named = {each["path"]: (each["bytes"], each["sha256"]) for each in manifest(folder)["files"]}
    found = {path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in files(folder).items()}
    assert found == named
