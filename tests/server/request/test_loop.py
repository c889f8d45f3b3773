"""The event loop never waits for disk, database or computation."""

import asyncio
import threading
import time

import pytest
from blockbuster import blockbuster_ctx

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support.bounds import Bounds
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest
from tests.support.query_count import queries
from tests.support.serving import Answer, Client, running


@pytest.mark.slow
async def test_no_endpoint_blocks_the_event_loop(store: Store, clock: MovableClock, bounds: Bounds) -> None:
    bounds(job_seconds=0.05)
    world = World(store, clock)
    valid_requests = [ValidRequest(world, route) for route in TESTED_ROUTES]
    async with running(store, clock) as client:
        owner = client.holding(world.tokens[OWNER])
        threads: set[str] = set()
        with queries(store, lambda _: threads.add(threading.current_thread().name)), blockbuster_ctx("musicsvc"):
            got = {endpoint(valid.route): (await ask(owner, valid)).status for valid in valid_requests}
            await asyncio.sleep(0.1)
    assert got == {endpoint(valid.route): valid.status for valid in valid_requests}
    assert threads
    assert all(name.startswith("store-") for name in threads), threads


async def ask(client: Client, valid: ValidRequest) -> Answer:
    return await client(valid.method, valid.path + valid.query, valid.body)


async def test_a_slow_unit_holds_up_nobody_else(client: Client, store: Store) -> None:
    """Others read while one reader and the writer are busy."""
    release = threading.Event()
    slow = [store.read(release.wait), store.write(release.wait)]
    try:
        for path in ("albums", "users/me", "/healthz", "/readyz", "/docs"):
            began = time.monotonic()
            assert (await client.get(path)).status == 200
            assert time.monotonic() - began < 5
        waiting = asyncio.create_task(client.post("artists", {"name": "Amy Beach"}))
        assert (await client.get("artists")).json["artists"]["total"] == 0
    finally:
        release.set()
    assert (await waiting).status == 201
    assert [unit.result() for unit in slow] == [True, True]


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # hashing is no part of the store
@pytest.mark.parametrize(("path", "status"), [("auth/register", 200), ("auth/login", 422)])
async def test_hashing_holds_up_nobody_else_and_a_long_line_is_told_to_come_back(
    anonymous: Client, path: str, status: int
) -> None:
    def send(number: int) -> asyncio.Task[Answer]:
        body = {"email": f"person{number}@new.test", "password": "three romances", "token_name": "phone"}
        return asyncio.create_task(anonymous.post(path, body))

    crowd = [send(number) for number in range(60)]
    await asyncio.sleep(0.05)
    assert (await anonymous.get("albums")).status == 200
    assert not all(task.done() for task in crowd)
    answers = await asyncio.gather(*crowd)
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {status, 503}
    assert statuses.count(status) >= 16  # two running, 14 waiting; two places stay for other addresses
    assert {answer.headers.get("Retry-After") for answer in answers} == {None, "1"}


@pytest.mark.only_on("sqlite")  # the fault is before any query
async def test_a_fault_of_ours_is_500_with_a_number_and_nothing_else(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(users, "create", broken)
    body = {"email": "ann@new.test", "password": "three romances"}
    answer = await client.post("auth/register", body, headers={"X-Request-Id": "told-by-the-client"})
    assert answer.status == 500
    message = "An internal error occurred. Report request told-by-the-client to the operator."
    assert answer.json == {"status": "error", "message": message, "errors": {}}
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == "unhandled exception in request told-by-the-client (method POST)"
    assert "a secret of the inside" in str(record.exc_info)
    assert (await client.get("albums")).status == 200
