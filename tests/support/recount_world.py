"""A catalog with every kind of play that a recount must get right, beside its dump."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from musicsvc.clock import DAY, HOUR, MovableClock, parse
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from musicsvc.store.plays import reattribution
from tests.conftest import NOW
from tests.support import figures_world
from tests.support.command import run_at
from tests.support.listening_world import Catalog, record, withdraw
from tests.support.oracle import PlayOf
from tests.support.play_counts import roll_up

# With days of leap years, a cut window before, an empty window, and months before and after the clock's.
PERIODS = ("7-days", "30-days", "1-year", "2026-02", "2024-02", "2025-Q4", "2024", "all", "2019-05", "today")
MIDNIGHTS = ("2024-02-29", "2024-03-01", "2026-02-01", "2026-03-01", "2025-12-31")
IMPORT = 9


class World(NamedTuple):
    made: Catalog
    folder: Path


def create(store: Store, folder: Path, now: int = NOW) -> World:
    """Fill the store, and dump it to the folder."""
    made = store.write(partial(figures_world.fill, now)).result()
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
            record([PlayOf((first, second, third)[offset % 3], at, f"late {offset} {number}", 15_000 * number)])
    record((PlayOf(first, NOW - 30 * DAY - hour * HOUR, "taken back", 1) for hour in range(50)), IMPORT)


def _change_tracks(made: Catalog) -> None:
    """Let one track have no length, and move another to an album, as imports do."""
    with reattribution.rebuilding(made.tracks):
        Track.update(duration=0).where(Track.id == made.tracks[3]).execute()
        Track.update(album=made.albums[1], duration=59_999).where(Track.id == made.tracks[2]).execute()
