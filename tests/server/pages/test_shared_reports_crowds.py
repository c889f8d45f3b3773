"""Strangers who open shared reports: a line of their own, a limit, kept pages, and reports of bounded length."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import pytest
import pytest_asyncio

from musicsvc.clock import DAY, SECOND, MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.server.pages import html
from musicsvc.server.request.executors import RESERVED, Work
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.accounts import api_access, users
from musicsvc.store.dashboards import dashboards, report_links
from musicsvc.store.engine.postgres import store as postgres
from musicsvc.store.engine.sqlite import store as sqlite
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, ReportLink, ReportLinkSubject
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.subjects import TRACK
from tests.rights.world import PASSWORD
from tests.support.html_page import HtmlPage
from tests.support.listening_world import Catalog, catalog
from tests.support.page_client import add_account, add_session, page_client
from tests.support.raw_connection import connected, request
from tests.support.serving import Answer, Client, running
from tests.support.shared_server import Shared
from tests.support.waiting import until

BUSY = "Too many requests of this kind are under way. Try again in a second."
PATIENCE = 30.0


class World(NamedTuple):
    store: Store
    clock: MovableClock
    anybody: Client
    made: Catalog

    def share(self, days: int = 7) -> str:
        """Create a link as earlier versions did, and return its path."""
        now = self.clock.now()
        columns = {"kind": TRACK, "created_at": now, "expires_at": now + 30 * DAY}
        days_of_link = {"first_day": now // DAY + 1 - days, "end_day": now // DAY + 1}

        def create() -> ReportLink:
            link: ReportLink = ReportLink.create(user=self.made.manager.user_id, **columns, **days_of_link)
            ReportLinkSubject.create(report_link=link.id, position=0, subject=self.made.tracks[0])
            return link

        link = self.store.write(create).result()
        return self.store.write(lambda: share_links.address(link.id, now, Site(""))).result()

    async def plays(self, link: str) -> int:
        answer = await self.anybody.get(link)
        assert answer.status == 200, answer.body
        return int(HtmlPage(answer.body).figures.get("plays.period", 0))  # a report of no plays has no figures

    def play(self, listener: str) -> None:
        track, now = self.made.tracks[0], self.clock.now()
        self.store.write(lambda: self.made.add_plays([(track, now, listener)])).result()


@pytest_asyncio.fixture
async def world(store: Store, clock: MovableClock) -> AsyncIterator[World]:
    made = store.write(lambda: catalog(clock.now())).result()
    async with running(store, clock) as anybody:
        yield World(store, clock, anybody, made)


class Gate:
    """Holds back calls until it is opened, and counts them."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.calls = 0

    def wait(self) -> None:
        self.calls += 1
        assert self._open.wait(PATIENCE)

    def open(self) -> None:
        self._open.set()


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> Iterator[Gate]:
    """Hold back the calls of a function of the module, except for a view with a secret."""
    gate, function = Gate(), getattr(module, name)

    def gated(*args: object, **more: object) -> object:
        if not (args and getattr(args[0], "again", None)):
            gate.wait()
        return function(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, gated)
        yield gate
        gate.open()


def busy(answer: Answer) -> bool:
    return (answer.status, answer.headers.get("Retry-After")) == (503, "1")


def room(kind: Work) -> int:
    """Return how many requests of one address are accepted at once."""
    return kind.value.threads + kind.value.waiting - RESERVED


async def ask(root: str, path: str, *headers: str) -> Answer:
    """Request the path over a connection of its own."""
    async with connected(root) as wire:
        await wire.send(request("GET", path, *headers))
        return await wire.answer()


async def fill(client: Client, paths: list[str], kind: Work, *headers: str) -> list[asyncio.Task[Answer]]:
    """Request the paths, of which some find the line full. Return the others, which wait."""
    asked = [asyncio.create_task(ask(client.root, path, *headers)) for path in paths]
    await until(lambda: sum(task.done() for task in asked) == len(paths) - room(kind))
    refused = [task.result() for task in asked if task.done()]
    assert all(map(busy, refused))
    return [task for task in asked if not task.done()]


async def test_a_full_line_of_reports_answers_503_while_the_api_and_managers_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [world.share() for _ in range(20)]
    manager = world.anybody.holding(world.made.token)
    with held(monkeypatch, dashboards, "report") as gate:
        waiting = await fill(world.anybody, links, Work.FIGURES)
        async with asyncio.timeout(PATIENCE / 2):
            assert BUSY in (await world.anybody.get(links[-1])).body.decode()
            for number in range(10):
                assert (await manager.get(f"albums?uncached={number}")).status == 200
                assert (await world.anybody.get("/")).status == 200
        gate.open()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}
    assert gate.calls == len(waiting) == room(Work.FIGURES) < len(links)


def test_pages_exports_and_lookups_together_leave_a_reader_of_the_store_to_the_api() -> None:
    threads = {kind: kind.value.threads for kind in Work}
    strangers, accounts = threads[Work.FIGURES] + threads[Work.LOOKING_UP], threads[Work.FIGURES]
    assert strangers + accounts + threads[Work.EXPORTING] < min(sqlite.READERS, postgres.READERS)


async def test_requests_for_the_same_report_compute_it_once_and_take_one_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, other = world.share(), world.share()
    with held(monkeypatch, dashboards, "report") as gate:
        asked = [asyncio.create_task(world.anybody.get(link)) for _ in range(40)]
        await until(lambda: gate.calls == 1)
        another = asyncio.create_task(world.anybody.get(other))
        gate.open()
        answers = await asyncio.gather(*asked, another)
    assert [answer.status for answer in answers] == [200] * 41
    assert len({answer.body for answer in answers[:40]}) == 1
    assert gate.calls == 2


async def test_rendering_has_a_bounded_line_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch, html, "render") as gate:
        waiting = await fill(world.anybody, ["/"] * (room(Work.RENDERING) + 5), Work.RENDERING)
        async with asyncio.timeout(PATIENCE / 2):
            refused = await world.anybody.get("/sign-in")
            assert (busy(refused), refused.headers["Content-Type"]) == (True, html.HTML_TYPE)
            assert f"<h1>Something is wrong</h1><p>{BUSY}</p>" in refused.body.decode()
            unknown = await world.anybody.get("/nowhere%3Cb%3E", headers={"Accept": "text/html"})
            assert (unknown.status, "<h1>Page not found</h1>" in unknown.body.decode()) == (404, True)
            assert (await world.anybody.get("albums")).status == 200
        gate.open()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}


def no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_secret_that_is_shown_once_is_shown_though_the_line_is_full(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(store, clock) as anybody, page_client(anybody.root) as browser:
        shared = Shared(anybody, store, clock)
        account = add_account(shared, "full@label.test")
        store.write(lambda: api_access.grant(users.get(account), now=1)).result()
        browser.cookies = {"musicsvc": add_session(shared, account)}
        form = {"form_token": await browser.form_token(), "name": "laptop", "scope": "read", "days": "30"}
        cookie = f"Cookie: musicsvc={browser.cookies['musicsvc']}"
        with held(monkeypatch, html, "render") as gate:
            waiting = await fill(anybody, ["/settings"] * (room(Work.RENDERING) + 5), Work.RENDERING, cookie)
            assert busy(await browser.get("/settings/developers"))
            shown = await browser.post("/settings/developers/tokens", form | {"password": PASSWORD})
            with monkeypatch.context() as patch:
                patch.setattr(asyncio, "to_thread", no_thread)
                also = await browser.post("/settings/developers/tokens", form | {"password": PASSWORD, "name": "phone"})
            gate.open()
            await asyncio.gather(*waiting)
    assert [(each.status, b"msvc_" in each.body) for each in (shown, also)] == [(200, True)] * 2


async def test_a_report_is_kept_for_five_seconds_and_its_link_checked_each_time(world: World) -> None:
    link, store, now = world.share(), world.store, world.clock.now()
    assert await world.plays(link) == 0
    world.play("first")
    assert await world.plays(link) == 0
    assert await world.plays(world.share()) == 1
    world.clock.advance(5 * SECOND - 1)
    assert await world.plays(link) == 0
    world.clock.advance(1)
    assert await world.plays(link) == 1

    manager, artist = world.made.manager.user_id, Artist.id == world.made.artists[0]
    store.write(lambda: users.suspend(users.get(manager), now=now)).result()
    assert (await world.anybody.get(link)).status == 404
    store.write(lambda: users.reinstate(users.get(manager), now=now)).result()
    assert await world.plays(link) == 1
    store.write(lambda: Artist.update(manager=None).where(artist).execute()).result()
    assert (await world.anybody.get(link)).status == 404
    store.write(lambda: Artist.update(manager=manager).where(artist).execute()).result()
    assert await world.plays(link) == 1
    link_id, _ = store.read(lambda: share_links.parse(link.rpartition("/")[2])).result()
    store.write(lambda: report_links.end(ReportLink.get_by_id(link_id), user_id=manager, now=now)).result()
    assert (await world.anybody.get(link)).status == 404


async def test_a_report_that_is_kept_is_compressed_only_for_those_who_ask(world: World) -> None:
    link = world.share()
    for _ in range(2):
        plain = await world.anybody.get(link, headers={"Accept-Encoding": "identity"})
        packed = await world.anybody.get(link, headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in plain.headers
        assert packed.headers["Content-Encoding"] == "gzip"
        assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])
        assert packed.body == plain.body
        assert {answer.headers["Cache-Control"] for answer in (plain, packed)} == {"no-store"}


async def test_an_address_may_open_so_many_reports_a_minute(store: Store, clock: MovableClock) -> None:
    limits = Limits.model_validate({"local": True, "reports": "3/minute"})
    made = store.write(lambda: catalog(clock.now())).result()
    async with running(store, clock, Settings(limits=limits)) as client, page_client(client.root) as browser:
        world = World(store, clock, client, made)
        links = [world.share() for _ in range(2)]
        browser.move(7)
        answers = [await browser.get(path) for path in (links[0], "/reports/wrong", links[1], links[0])]
        assert [answer.status for answer in answers] == [200, 404, 200, 429]
        assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
        assert 0 < int(answers[3].headers["Retry-After"]) <= 60
        assert b"The limit of 3 shared reports a minute for your address is reached." in answers[3].body
        assert (await browser.get("/")).status == 200
        browser.move(8)
        assert (await browser.get(links[0])).status == 200


async def test_a_report_of_more_than_3660_days_cannot_be_shared(world: World) -> None:
    today, path = world.clock.now() // DAY, f"/insights/track/{world.made.tracks[0]}"
    async with page_client(world.anybody.root) as manager:
        shared = Shared(world.anybody, world.store, world.clock)
        manager.cookies["musicsvc"] = add_session(shared, world.made.manager.user_id)
        for days, status in ((3_660, 201), (3_661, 422)):
            first, last = (to_date(day).isoformat() for day in (today + 1 - days, today))
            answer = await manager.post(f"{path}/share?from={first}&to={last}", {"days": "9"})
            assert answer.status == status, answer.body
    page = HtmlPage(answer.body)
    assert "A shared report has at most 3,660 days. Choose a shorter period first." in answer.body.decode()
    (field,) = [found for tag, found in page.attributes if tag == "input" and found.get("name") == "days"]
    assert (field["value"], "aria-invalid" in field) == ("9", False)


async def test_an_older_link_to_more_days_shows_the_last_3660_and_says_so(world: World) -> None:
    today = world.clock.now() // DAY
    texts = []
    for days in (3_659, 3_660, 3_661, 36_500):
        answer = await world.anybody.get(world.share(days))
        shown = today + 1 - min(days, 3_660)
        assert f"{to_date(shown):%-d %b %Y} to {to_date(today):%-d %b %Y}" in answer.body.decode()
        texts.append(answer.body.decode())
    notes = ["shows its last 3,660 days only" in text for text in texts]
    assert notes == [False, False, True, True]
    assert f"made for a report from {to_date(today + 1 - 36_500):%-d %b %Y}." in texts[3]
    assert all(before != after for before, after in pairwise(texts))
