"""Two accounts and the line of figures: one that floods it, and one that visits its pages."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.server.request.executors import RESERVED, Work
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.dashboards import dashboards
from musicsvc.store.editing import twins
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Artist, Track
from musicsvc.store.plays.subjects import ACCOUNT, Subject
from tests.server.responses.test_answer_cache import ready
from tests.support.bounds import Bounds
from tests.support.listening_world import Catalog, catalog
from tests.support.page_client import PageClient, add_session, page_client
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client, running
from tests.support.shared_server import Shared
from tests.support.waiting import until

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

PATIENCE = 30.0
ROOM = Work.FIGURES.value.threads + Work.FIGURES.value.waiting - RESERVED  # of one account, alone
PERIODS = ("7-days", "30-days", "90-days")


class Label(NamedTuple):
    """An account with artists, and its browser."""

    made: Catalog
    browser: PageClient

    def pages(self) -> list[str]:
        """Return 23 pages of figures."""
        found = ["/insights", *(f"/insights/{kind}" for kind in ("artists", "albums", "tracks"))]
        for kind, ids in (("artist", self.made.artists), ("album", self.made.albums), ("track", self.made.tracks)):
            found += [f"/insights/{kind}/{ids[0]}?period={period}" for period in PERIODS]
            found += [f"/insights/duplicates?kind={kind}", f"/insights/{kind}/{ids[1]}"]
        return [*found, *(f"/insights/artists?period={period}" for period in PERIODS), "/insights?period=90-days"]


class World(NamedTuple):
    shared: Shared
    heavy: Label
    small: Label


@pytest_asyncio.fixture
async def world(store: Store, clock: MovableClock) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(running(store, clock))
        shared, labels = Shared(client, store, clock), []
        for _ in range(2):
            made = store.write(lambda: catalog(clock.now())).result()
            browser = await stack.enter_async_context(page_client(client.root))
            browser.cookies["musicsvc"] = add_session(shared, made.manager.user_id)
            labels.append(Label(made, browser))
        yield World(shared, *labels)


class Gate:
    """Holds back calls until they are let through, and counts them."""

    def __init__(self) -> None:
        self._passes = threading.Semaphore(0)
        self.calls = 0

    def wait(self) -> None:
        self.calls += 1
        assert self._passes.acquire(timeout=PATIENCE)

    def open(self, number: int = 1) -> None:
        self._passes.release(number)

    def close(self) -> None:
        """Let through none of those that were not yet there when it was opened."""
        while self._passes.acquire(blocking=False):
            pass


@pytest.mark.slow
async def test_an_account_that_floods_the_line_of_figures_closes_no_page_to_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, report, heavy = Gate(), dashboards.report, Subject(ACCOUNT, world.heavy.made.manager.user_id)

    def gated(subject: Subject, *others: Any) -> Any:
        if subject == heavy:
            gate.wait()
        return report(subject, *others)

    monkeypatch.setattr(dashboards, "report", gated)
    flood: list[asyncio.Task[Answer]] = []
    statuses: Counter[int] = Counter()
    pages = world.small.pages()
    assert len(set(pages)) == 23

    def waiting() -> int:
        return sum(not task.done() for task in flood)

    async def visited(path: str) -> int:
        visit = asyncio.create_task(world.small.browser.get(path))
        while not visit.done():
            passed = gate.calls
            gate.open()
            await until(lambda: visit.done() or gate.calls > passed)  # noqa: B023 - at once
        gate.close()
        return visit.result().status

    try:
        for path in pages:
            flood += [asyncio.create_task(world.heavy.browser.get("/insights")) for _ in range(ROOM + 5)]
            await until(lambda: ROOM - 1 <= waiting() <= ROOM)  # one may have passed the gate before it closed
            statuses[await visited(path)] += 1
    finally:
        gate.open(len(flood))
    answers = Counter(answer.status for answer in await asyncio.gather(*flood))
    assert statuses == {200: 23}
    assert set(answers) == {200, 503}


async def test_a_third_export_beside_another_account_is_refused_and_counts_as_an_export(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, cells = Gate(), export_rows.cells

    def gated(kind: str, scope: Scope, *others: Any) -> Any:
        gate.wait()
        return cells(kind, scope, *others)

    monkeypatch.setattr(export_rows, "cells", gated)
    made = [store.write(lambda: catalog(clock.now())).result() for _ in range(2)]
    limits = Limits.model_validate({"local": True, "exports": "10/hour", "token": "100/hour"})
    async with running(store, clock, Settings(limits=limits)) as client:
        other, mine = (client.holding(each.token) for each in made)

        def export(client: Client) -> asyncio.Task[Answer]:
            return asyncio.create_task(client.post(f"{INSIGHTS}/export/json", {"type": "tracks"}))

        try:
            begun = [export(other)]
            await until(lambda: gate.calls == 1)
            begun += [export(mine), export(mine), export(mine)]
            await until(lambda: any(task.done() for task in begun))
            (refused,) = [task.result() for task in begun if task.done()]
        finally:
            gate.open(100)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json["message"] == (
            "2 of your requests of this kind are under way, and others wait. Try again in a second."
        )
        conforms(refused, "POST", f"{INSIGHTS}/export/json")
        answers = await asyncio.gather(*begun)
        assert sorted(answer.status for answer in answers) == [200, 200, 200, 503]
        last = await export(mine)
    assert last.headers["RateLimit"].startswith('"token";r=97;')
    assert '"exports";r=6;' in last.headers["RateLimit"]


async def test_pairs_of_duplicates_are_found_again_only_after_the_catalog_has_changed(
    world: World, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(counters_seconds=3600.0)
    await ready(world.shared.client)
    found: list[tuple[object, ...]] = []
    find = twins.find

    def noted(*arguments: Any) -> bytes:
        found.append(arguments)
        return find(*arguments)

    monkeypatch.setattr(twins, "find", noted)
    (made, browser), store = world.small, world.shared.store

    async def pairs(kind: str = "track") -> int:
        answer = await browser.get(f"/insights/duplicates?kind={kind}")
        assert answer.status == 200, answer.body
        return answer.body.count(b"data-twins")

    def rename(model: type[Track | Artist], row_id: int, name: str) -> None:
        store.write(lambda: model.update(name=name).where(model.id == row_id).execute()).result()

    assert [await pairs(), await pairs(), await pairs("artist"), await pairs("artist")] == [0] * 4
    assert (await browser.get("/insights/duplicates?kind=track&page=2")).status == 200
    assert len(found) == 2
    store.write(lambda: made.add_plays([(made.tracks[0], world.shared.clock.now(), "ada")])).result()
    for _ in range(2):
        assert await pairs() == 0
    assert len(found) == 2
    rename(Track, made.tracks[1], "TRACK 0!")
    assert [await pairs(), await pairs()] == [1, 1]
    rename(Track, made.tracks[0], "Changed")
    assert [await pairs(), await pairs()] == [0, 0]
    rename(Artist, made.artists[2], "artist 1")
    assert [await pairs("artist"), await pairs("artist")] == [1, 1]
    assert len(found) == 5


async def test_an_account_sees_pairs_of_its_own_whoever_came_first(world: World) -> None:
    store, name = world.shared.store, "Same"

    def rename() -> None:
        tracks = world.heavy.made.tracks[:2]
        Track.update(name=name).where(Track.id.in_(tracks)).execute()

    store.write(rename).result()
    for _ in range(2):
        for label, pairs in ((world.heavy, 1), (world.small, 0)):
            page = await label.browser.get("/insights/duplicates?kind=track")
            assert page.body.count(b"data-twins") == pairs
