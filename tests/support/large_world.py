"""A synthetic catalog with a year of plays, of any size."""

import random
from collections.abc import Callable
from functools import partial
from itertools import accumulate

from musicsvc.clock import DAY
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Listener, Track
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.seeding import synthetic

BATCH = 50_000
SPAN = 365 * DAY


def fill(store: Store, tracks: int, plays: int, *, manager: int, now: int) -> None:
    """Create about this number of tracks, managed by an account, and plays of them in the year before `now`."""
    synthetic.create(store, tracks / synthetic.TRACKS, 1, on_progress=lambda *_: None)
    chance = random.Random(plays)
    people = range(1, max(2, plays // 20))
    store.write(partial(_add_people, people, manager)).result()
    ids = store.read(lambda: [track.id for track in Track.select().order_by(Track.id)]).result()
    weights = list(accumulate(1 / rank for rank in range(1, len(ids) + 1)))
    draw: Callable[[int], list[int]] = lambda count: chance.choices(ids, cum_weights=weights, k=count)  # noqa: E731 - short
    step = SPAN // plays
    for first in range(0, plays, BATCH):
        rows = [
            ingest.PlayRow(at // SLOT, track, chance.choice(people) + FIRST, b"", at, chance.randrange(300_000), 0)
            for at, track in zip(
                range(now - SPAN + first * step, now, step), draw(min(BATCH, plays - first)), strict=False
            )
        ]
        store.write(partial(_record, rows)).result()


FIRST = 100_000  # of the ids of listeners


def _add_people(people: range, manager: int) -> None:
    bulk.insert(Listener, ["id", "key"], [(FIRST + n, f"opaque:person {n}") for n in people])
    Artist.update(manager=manager).where(Artist.manager.is_null()).execute()


def _record(rows: list[ingest.PlayRow]) -> None:
    taken = ingest.record(rows)
    for _ in range(0, len(rows), 1_000):
        counting.roll_up(min(taken, 1_000))
