"""Every endpoint and page answers alike before a copy to the other kind of database, after it, and after one back."""

from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.copying import compare, connecting, copy
from musicsvc.store.schema import schema
from tests.conftest import NOW
from tests.support import corpus, databases, every_table, large_world
from tests.support.serving import running
from tests.support.shared_server import Shared

MANAGER = 1
SIZES = [
    pytest.param(300, 20_000, marks=pytest.mark.slow, id="small"),
    pytest.param(23_700, 1_000_000, marks=pytest.mark.long, id="large"),  # 28,000 tracks with those of other worlds
]


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
        large_world.fill(store, tracks, plays, manager=MANAGER, now=NOW)
        async with running(store, clock) as client:
            return corpus.Corpus(Shared(client, store, clock), MANAGER, 24).requests


async def responses(url: str, requests: list[corpus.Sent], clock: MovableClock) -> list[tuple[object, ...]]:
    with opening.connect(url) as store:
        async with running(store, clock) as client:
            return await corpus.play(client, requests)
