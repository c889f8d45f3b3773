"""Random plays of a catalog, recorded by an import that can be withdrawn."""

import random
from collections.abc import Callable

from musicsvc.store.engine.store import Store
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.support.listening_world import Catalog
from tests.support.withdrawn_plays import withdraw_import

Heard = list[tuple[int, int, str]]

RUN = 7  # the number of the import


def draw(made: Catalog, seed: int, count: int, time: Callable[[random.Random], int]) -> Heard:
    """Return random plays as (track's id, time, listener's name), most of them of the first track."""
    chance = random.Random(seed)
    return [
        (made.tracks[chance.choice((0, 0, 0, 1, 3))], time(chance), str(chance.randrange(99))) for _ in range(count)
    ]


def import_plays(plays: Heard) -> None:
    """Record plays of the import; in a writing unit."""
    ids = listeners.ensure({listeners.opaque_key(name) for _, _, name in plays})
    ingest.record(
        ingest.PlayRow(at // SLOT, track, ids[listeners.opaque_key(name)], b"", at, None, 0, RUN)
        for track, at, name in plays
    )


def withdraw(store: Store) -> None:
    """Withdraw all plays of the import."""
    withdraw_import(store, RUN)


def ignore(*_: object) -> None:
    """Ignore progress."""
