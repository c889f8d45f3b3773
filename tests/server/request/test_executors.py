"""Too much heavy work: token holders never wait for others, and refused requests are 503 and not counted."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.request.executors import RESERVED, BoundedExecutor, Work
from musicsvc.server.responses.drawer import Drawer
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import passwords, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.store import Store
from tests.support.bounds import Bounds
from tests.support.malformed_requests import JSON
from tests.support.prometheus import scraped, total
from tests.support.raw_connection import connected, request
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client, person, running

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

BODY = {"template_id": 2, "artist": "Anna Bon"}
BUSY = "Too many requests of this kind are under way. Try again in a second."
PNG = b"\x89PNG\r\n\x1a\n"
PATIENCE = 30.0
REFUSED = "musicsvc_requests_refused_total"


def capacity(kind: Work) -> int:
    """Return how much work of the kind is accepted at once of one client, while no other has any."""
    return kind.value.threads + kind.value.waiting - RESERVED


@contextmanager
def slow_pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Delay pictures whose text contains `Slow` until the event is set."""
    finished = threading.Event()
    draw = Drawer.draw

    def gated(drawer: Drawer, *drawing: Any) -> bytes:
        if "Slow" in str(drawing):
            finished.wait(PATIENCE)
            return PNG
        return draw(drawer, *drawing)

    with monkeypatch.context() as patch:
        patch.setattr(Drawer, "draw", gated)
        yield finished
        finished.set()


async def in_flight(client: Client, count: int) -> None:
    """Wait until this many requests are in progress, beside the one for the metrics."""
    async with asyncio.timeout(PATIENCE):
        while total(await scraped(client), "musicsvc_requests_in_flight") != count + 1:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.01)


@contextmanager
def accepting(monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[asyncio.Event]:
    """Yield an event that is set when the executors have accepted this many units of work."""
    reached, run, accepted = asyncio.Event(), BoundedExecutor.run, 0

    async def counted(executor: BoundedExecutor, *work: Any) -> object:
        nonlocal accepted
        accepted += 1
        if accepted == count:
            reached.set()
        return await run(executor, *work)

    with monkeypatch.context() as patch:
        patch.setattr(BoundedExecutor, "run", counted)
        yield reached


def check_busy(answer: Answer) -> None:
    assert (answer.status, answer.headers["Retry-After"], answer.json["message"]) == (503, "1", BUSY)


@pytest.mark.slow
async def test_pictures_for_anybody_neither_delay_nor_refuse_a_token_holders(
    client: Client, store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    anonymous, full = client.holding(None), capacity(Work.DRAWING)
    titles = [f"Slow {number}" for number in range(full + 3)]
    slow = [(await client.post("cover-art/preview", BODY | {"title": title})).json["preview_url"] for title in titles]
    mine = (await client.post("cover-art/preview", BODY | {"title": "Mine"})).json["preview_url"]
    avatar = (await client.get("users/me")).json["user"]["avatar"]
    outsider = client.holding(person(store, clock, "bob@label.test", access=False)[1])
    with slow_pictures(monkeypatch) as finished, accepting(monkeypatch, full) as busy:
        drawing = [asyncio.create_task(anonymous.get(url)) for url in slow[:full]]
        await asyncio.wait_for(busy.wait(), PATIENCE)
        for holder, url in ((anonymous, slow[full]), (outsider, mine), (client.holding("msvc_x"), mine)):
            check_busy(await holder.get(url))
        async with asyncio.timeout(PATIENCE):
            for url in (mine, avatar, "/cover-art/templates/3.png"):
                assert (await client.get(url)).status == 200
                assert (await anonymous.get(url)).status == 200  # cached by now
            assert (await client.post(f"{INSIGHTS}/export/pdf", {})).body.startswith(b"%PDF")
        assert not any(task.done() for task in drawing)
        finished.set()
        assert {(answer.status, answer.body) for answer in await asyncio.gather(*drawing)} == {(200, PNG)}
    figures = await scraped(client)
    assert total(figures, REFUSED, limit="busy") == total(figures, REFUSED) == 3
    assert total(figures, "musicsvc_requests_total", status="503") == 3


async def test_lookups_for_anybody_leave_the_readers_of_the_store_to_token_holders(
    client: Client, store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, finished = person(store, clock, "slow@label.test")[0], threading.Event()
    get = users.get

    def gated(user_id: int) -> object:
        if user_id == slow:
            finished.wait(PATIENCE)
        return get(user_id)

    monkeypatch.setattr(users, "get", gated)
    waiting = [asyncio.create_task(client.holding(None).get(f"/avatars/{slow}")) for _ in range(12)]
    await in_flight(client, len(waiting))
    async with asyncio.timeout(PATIENCE / 2):
        assert (await client.get("albums")).status == 200
        assert (await client.get("/avatars/1")).status == 200
    finished.set()
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}


async def test_the_same_picture_is_drawn_once_however_many_ask(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    draw = Drawer.draw

    def noted(drawer: Drawer, *drawing: Any) -> bytes:
        drawn.append(drawing)
        return draw(drawer, *drawing)

    monkeypatch.setattr(Drawer, "draw", noted)
    for _ in range(2):
        answers = await asyncio.gather(*(anonymous.get("/cover-art/templates/2.png") for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
    assert drawn == [("thumbnail", 2)]


async def test_registrations_that_find_no_capacity_count_to_no_limit(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, finished = capacity(Work.REGISTERING), threading.Event()
    hash_password = passwords.hash_password

    def gated(password: str) -> str:
        finished.wait(PATIENCE)
        return hash_password(password) if password.startswith("my own") else "-"

    monkeypatch.setattr(passwords, "hash_password", gated)
    limits = Limits.model_validate({"local": True, "register": f"{full + 3}/hour", "address": "100/minute"})
    async with running(store, clock, Settings(limits=limits)) as anonymous:

        async def register(number: int, word: str = "not mine") -> Answer:
            body = {"email": f"user{number}@label.test", "password": f"{word} {number}"}
            return await anonymous.post("auth/register", body, headers={"X-Request-Id": f"register-{number}"})

        with accepting(monkeypatch, full) as busy:
            hashing = [asyncio.create_task(register(number)) for number in range(full)]
            await asyncio.wait_for(busy.wait(), PATIENCE)
        for number in range(5):
            refused = await register(full + number)
            check_busy(refused)
            conforms(refused, "POST", "/api/v1/auth/register")
        finished.set()
        assert {answer.status for answer in await asyncio.gather(*hashing)} == {200}
        last = await register(full + 9, "my own")
        assert last.status == 200
        assert f'"address";r={100 - full - 1};' in last.headers["RateLimit"]
        assert '"register";r=2;' in last.headers["RateLimit"]
        figures = await scraped(anonymous)
    assert (total(figures, REFUSED, limit="busy"), total(figures, REFUSED, limit="register")) == (5, 0)
    with activity_log.build(store.url) as log:
        log.prepare()
        (entry,) = log.read(lambda: calls.find(calls.Filter(request_id=f"register-{full}"), limit=9)).result()
    assert (entry.status, entry.retry_after) == (503, None)


async def test_a_body_that_finds_no_memory_costs_its_token_nothing(
    store: Store, clock: MovableClock, bounds: Bounds
) -> None:
    bounds(max_held=0)
    _, token = person(store, clock, "ann@label.test")
    limits = Limits.model_validate({"local": True, "token": "2/minute"})
    async with running(store, clock, Settings(limits=limits)) as anonymous, connected(anonymous.root) as wire:
        large = request(
            "POST", "/api/v1/artists", f"Authorization: Bearer {token}", JSON, body=b'{"name":"' + b"a" * 20_000 + b'"}'
        )
        for _ in range(4):
            await wire.send(large)
            answer = await wire.answer()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        answer = await anonymous.holding(token).get("albums")
    assert (answer.status, answer.headers["X-RateLimit-Remaining"]) == (200, "1")


async def test_work_for_which_the_system_starts_no_thread_is_given_up_and_the_next_is_done(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_id, _ = person(store, clock, "ann@label.test")
    start, done = threading.Thread.start, list[int]()
    executor = BoundedExecutor("trial", 1, 2, share=1, low_priority=False)

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith(("trial", "looking-up")):
            raise RuntimeError("can't start new thread")
        start(thread)

    async with running(store, clock) as anonymous:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", limited)
            for _ in range(2):
                with pytest.raises(MemoryError):
                    await executor.run(lambda: done.append(1), "ann", None)
                refused = await anonymous.get(f"{anonymous.root}/avatars/{user_id}")
                assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        async with asyncio.timeout(PATIENCE):
            await executor.run(lambda: done.append(2), "ann", None)
            assert (await anonymous.get(f"{anonymous.root}/avatars/{user_id}")).status == 200
    assert done == [2]
    executor.close()


async def test_an_app_that_was_stopped_leaves_no_thread_of_heavy_work(
    anonymous: Client, store: Store, clock: MovableClock
) -> None:
    user_id, _ = person(store, clock, "ann@label.test")
    before = set(threading.enumerate())

    def working() -> set[str]:
        names = {each.name.rpartition("_")[0] for each in set(threading.enumerate()) - before}
        return names & {kind.value.name for kind in Work}

    listener = serving.listen("127.0.0.1", 0)
    app = App(Settings(), store, clock, anonymous.root)
    await app.start(listener)
    for path, threads in (("api/v1/artists", set()), (f"avatars/{user_id}", {"looking-up", "drawing"})):
        answer = await anonymous.get(f"http://127.0.0.1:{listener.getsockname()[1]}/{path}")
        assert (answer.status, working()) == (200, threads)
    await app.stop()
    assert working() == set()
