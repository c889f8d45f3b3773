"""Speed of recording plays, with rollups: CPU time of this process per play, in batches of several sizes.

    python benchmarks/plays.py [--plays 1000000] [--order time|random]

Creates tracks with a Zipf distribution and listeners in a temporary SQLite file; records plays of ten months until
`--plays` exist, then measures batches of each size in turn over two months more, so that other work on the machine
affects all alike. The average counts: after the end of a month, batches also count its days, and take longer.
"""

import argparse
import random
import statistics
import tempfile
import time
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from musicsvc.clock import DAY, parse
from musicsvc.store import opening
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Listener, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.schema import schema

NOW = parse("2026-03-01T12:00:00Z")
TRACKS, ALBUMS, ARTISTS, LISTENERS, DAYS = 100_000, 20_000, 5_000, 200_000, 365
FIRST = NOW - DAYS * DAY
FILLING = 50_000
ROUND = 10_000  # plays of each size of batch
FEWEST_ROUNDS = 7


def main() -> None:
    """Create the tracks, fill the database, measure."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--plays", type=int, default=1_000_000)
    wanted.add_argument("--order", choices=["time", "random"], default="time")
    options = wanted.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "musicsvc.db"
        files.create(file)
        schema.upgrade(f"sqlite:///{file}")
        with opening.connect(f"sqlite:///{file}") as store:
            for table in (_artists, _albums, _tracks, _listeners):
                store.write(table).result()
            _measure(store, _Stream(options.plays, options.order), options.plays)
            print(f"file: {file.stat().st_size / 1e6:,.0f} MB")


class _Stream:
    """Synthetic plays: tracks with a Zipf distribution, random listeners, times ascending or not."""

    def __init__(self, size: int, order: str) -> None:
        self._chance = random.Random(1)  # noqa: S311 - no secrets
        self._tracks = list(range(1, TRACKS + 1))
        self._chance.shuffle(self._tracks)
        self._weights = list(accumulate(1 / rank for rank in range(1, TRACKS + 1)))
        self._step = DAYS * DAY // (size + size // 5)
        self._now = FIRST
        self._ordered = order == "time"

    def batch(self, size: int) -> list[PlayRow]:
        """The next plays."""
        tracks = self._chance.choices(self._tracks, cum_weights=self._weights, k=size)
        return [self._play(track) for track in tracks]

    def _play(self, track: int) -> PlayRow:
        self._now += self._step
        at = self._now if self._ordered else FIRST + int(self._chance.random() * DAYS * DAY)
        listener = int(self._chance.random() * LISTENERS) + 1
        return PlayRow(at // SLOT, track, listener, WITHOUT_ID, at, 200_000, 0)


def _measure(store: Store, stream: _Stream, size: int) -> None:
    began = time.process_time()
    spent = 0.0
    for _ in range(size // FILLING):
        spent += _put(store, stream.batch(FILLING))
    print(f"{size:,} plays in batches of {FILLING:,}: {size / spent:,.0f} plays per CPU second, rollups included")
    print(f"(created in {time.process_time() - began:.0f} s)")
    found: dict[int, list[float]] = {1_000: [], 10_000: []}
    for _ in range(max(FEWEST_ROUNDS, size // 12 // ROUND)):
        for batch, times in found.items():
            count = ROUND // batch
            times.append(sum(_put(store, stream.batch(batch)) for _ in range(count)) / ROUND)
    for batch, times in found.items():
        print(
            f"batches of {batch:,}: {1 / statistics.mean(times):,.0f} plays per CPU second on average"
            f" ({1 / max(times):,.0f} … {1 / min(times):,.0f})"
        )


def _put(store: Store, rows: list[PlayRow]) -> float:
    """Return the CPU seconds for these plays and for the rollups that become due."""
    began = time.process_time()
    taken = store.write(partial(_unit, rows)).result()
    spent = time.process_time() - began
    assert taken > len(rows) * 0.9
    return spent


def _unit(rows: list[PlayRow]) -> int:
    taken = ingest.record(rows)
    for _ in range(0, len(rows), 1_000):
        ingest.roll_up(min(taken, 1_000))
    return taken


def _artists() -> None:
    bulk.insert(Artist, ("id", "name", "created_at"), [(n, f"Artist {n}", 1) for n in range(1, ARTISTS + 1)])


def _albums() -> None:
    bulk.insert(Album, ("id", "name", "created_at"), [(n, f"Album {n}", 1) for n in range(1, ALBUMS + 1)])
    links = [(n, 1 + n % ARTISTS, 0) for n in range(1, ALBUMS + 1)]
    bulk.insert(AlbumArtist, ("album", "artist", "position"), links)


def _tracks() -> None:
    rows: list[tuple[Any, ...]] = [(n, f"Track number {n}", 200_000, 1 + n % ALBUMS, 1) for n in range(1, TRACKS + 1)]
    bulk.insert(Track, ("id", "name", "duration", "album", "created_at"), rows)
    links = [(n, 1 + (n % ALBUMS) % ARTISTS, 0) for n in range(1, TRACKS + 1)]
    links += [(n, 1 + (n * 7) % ARTISTS, 1) for n in range(5, TRACKS + 1, 5) if (n * 7 - n % ALBUMS) % ARTISTS]
    bulk.insert(TrackArtist, ("track", "artist", "position"), links)


def _listeners() -> None:
    keys = [(n, listeners.opaque_key(f"listener {n}")) for n in range(1, LISTENERS + 1)]
    bulk.insert(Listener, ("id", "key"), keys)


if __name__ == "__main__":
    main()
