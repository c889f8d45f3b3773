"""Every endpoint and page answers alike before a copy to the other kind of database, after it, and after one back."""

import random
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.copying import compare, connecting, copy
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Listener, Track
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.schema import schema
from musicsvc.store.seeding import synthetic
from tests.conftest import NOW
from tests.support import corpus, databases, every_table
from tests.support.serving import running
from tests.support.shared_server import Shared

MANAGER = 1
SIZES = [
    pytest.param(300, 20_000, marks=pytest.mark.slow, id="small"),
    pytest.param(23_700, 1_000_000, marks=pytest.mark.long, id="large"),  # 28,000 tracks with those of other worlds
]
BATCH = 50_000
SPAN = 365 * DAY
FIRST = 100_000  # of the ids of listeners


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize(("tracks", "plays"), SIZES)
async def test_responses_are_the_same_on_every_copy(
    template: databases.Template, tmp_path: Path, tracks: int, plays: int
) -> None:
    clock = MovableClock(NOW, speed=0)
    first = f"sqlite:///{tmp_path / 'first' / 'musicsvc.db'}"
    requests = await create(first, tracks, plays, clock)
    assert len(requests) >= 2_000
    asked = {(each.method, each.path) for each in requests}
    assert len(ROUTES) <= len(asked)
    with databases.Maker(template, tmp_path) as maker:
        second = maker.make(migrated=False)
        third = f"sqlite:///{tmp_path / 'third' / 'musicsvc.db'}"
        for source, target in ((first, second), (second, third)):
            with connecting.connect(source) as opened:
                assert copy.copy(opened, target).complete
            with connecting.connect(source) as one, connecting.connect(target) as other:
                assert compare.compare(one, other).equal

        expected, *copies = [await responses(url, requests, clock) for url in (first, second, third)]

    for found in copies:
        assert corpus.differences(requests, expected, found) == []


async def create(url: str, tracks: int, plays: int, clock: MovableClock) -> list[corpus.Sent]:
    """Create a database with rows in every table, a catalog and plays. Return requests about it."""
    schema.create(url)
    every_table.fill_log(url)
    with opening.connect(url) as store:
        store.write(every_table.fill).result()
        fill(store, tracks, plays, manager=MANAGER, now=NOW)
        async with running(store, clock) as client:
            return corpus.Corpus(Shared(client, store, clock), MANAGER, 24).requests


async def responses(url: str, requests: list[corpus.Sent], clock: MovableClock) -> list[tuple[object, ...]]:
    with opening.connect(url) as store:
        async with running(store, clock) as client:
            return await corpus.play(client, requests)


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


def _add_people(people: range, manager: int) -> None:
    bulk.insert(Listener, ["id", "key"], [(FIRST + n, f"opaque:person {n}") for n in people])
    Artist.update(manager=manager).where(Artist.manager.is_null()).execute()


def _record(rows: list[ingest.PlayRow]) -> None:
    taken = ingest.record(rows)
    for _ in range(0, len(rows), 1_000):
        counting.roll_up(min(taken, 1_000))
