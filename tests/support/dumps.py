"""Plays that are dumped, and the content of dumps."""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from musicsvc.clock import DAY, HOUR, MovableClock, parse
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AlbumArtist, Track
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest, reattribution
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.conftest import NOW
from tests.support import listening_world
from tests.support.command import run_at
from tests.support.listening_world import Catalog, withdraw
from tests.support.oracle import PlayOf
from tests.support.play_counts import roll_up
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
# With days of leap years, a cut window before, an empty window, and months before and after the clock's.
PERIODS = ("7-days", "30-days", "1-year", "2026-02", "2024-02", "2025-Q4", "2024", "all", "2019-05", "today")
MIDNIGHTS = ("2024-02-29", "2024-03-01", "2026-02-01", "2026-03-01", "2025-12-31")
IMPORT = 9


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


class World(NamedTuple):
    made: Catalog
    folder: Path


def create(store: Store, folder: Path, now: int = NOW) -> World:
    """Fill the store, and dump it to the folder."""
    made = store.write(partial(listening_world.fill, now)).result()
    roll_up(store)
    store.write(partial(_add_late, made)).result()
    withdraw(store, IMPORT)
    store.write(partial(_change_tracks, made)).result()
    return World(made, dump(store, folder, now))


def dump(store: Store, folder: Path, now: int = NOW) -> Path:
    """Dump the plays of the store to the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSICSVC_DATABASE_URL", store.url)
        run_at(MovableClock(now, speed=0), "plays", "dump", "--output", str(folder))
    return folder


def _add_late(made: Catalog) -> None:
    """Record plays of days that are counted already, around midnight, and those of an import that is undone later."""
    first, second, *_, third, _ = made.tracks
    for number, day in enumerate(MIDNIGHTS):
        for offset in range(-number - 2, number + 1):
            at = min(parse(f"{day}T00:00:00Z") + offset, NOW)
            listening_world.record(
                [PlayOf((first, second, third)[offset % 3], at, f"late {offset} {number}", 15_000 * number)]
            )
    listening_world.record((PlayOf(first, NOW - 30 * DAY - hour * HOUR, "taken back", 1) for hour in range(50)), IMPORT)


def _change_tracks(made: Catalog) -> None:
    """Let one track have no length, and move another to an album, as imports do."""
    with reattribution.rebuilding(made.tracks):
        Track.update(duration=0).where(Track.id == made.tracks[3]).execute()
        Track.update(album=made.albums[1], duration=59_999).where(Track.id == made.tracks[2]).execute()
