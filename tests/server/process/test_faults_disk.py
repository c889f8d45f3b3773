"""The server on a failing disk: reads are answered, writes get 503 with Retry-After."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import apsw
import pytest
from blockbuster import blockbuster_ctx

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.server.routes.route import V1, Route
from musicsvc.store.engine.store import Store
from tests.faults import system
from tests.faults.locking import locked
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest, is_error
from tests.support.serving import Answer, Client, running

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not system.DESCRIPTORS.exists(), reason="looks at descriptors in /proc"),
]

TICK = 0.005
PAGE = 4096
LONGEST_TURN = 0.25  # seconds of CPU; a collection of all garbage of the tests takes a part of it
READS = ["albums", "artists", "tracks/1", "artists/1/tracks", "users/me", "playlists", "users/search?query=a", "genres"]
# With the bodies of the table of rights these change nothing, so they need no disk space.
IDLE = {
    f"POST {V1}/users/{{id}}/unfollow",
    f"POST {V1}/access-requests",
    f"POST {V1}/tracks/{{id}}/unlike",
    f"POST {V1}/tracks/{{id}}/unrepost",
    f"POST {V1}/playlists/{{id}}/tracks/remove",
    f"POST {V1}/playlists/{{id}}/tracks/move",
    f"POST {V1}/playlists/{{id}}/accept-invite",
    f"POST {V1}/playlists/{{id}}/decline-invite",
    f"DELETE {V1}/fcm-tokens",
    f"PUT {V1}/notifications/{{user}}/subscriptions",
}
REFUSED = "The database is not available."


@pytest.fixture
def calls(file: Path) -> Iterator[system.System]:
    with system.calls(file.parent) as calls:
        yield calls


@asynccontextmanager
async def unhurried() -> AsyncIterator[None]:
    """Assert that no turn of the event loop in the block waits for the disk or takes long."""
    turns: list[float] = []

    async def tick() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(TICK)
            turns.append(time.thread_time() - began)

    ticking = asyncio.create_task(tick())
    with blockbuster_ctx("musicsvc"):
        yield
    ticking.cancel()
    assert max(turns) < LONGEST_TURN


async def ask(client: Client, valid: ValidRequest) -> Answer:
    return await client(valid.method, valid.path + valid.query, valid.body)


def is_refusal(answer: Answer, route: Route) -> bool:
    """Return whether the answer is a 503 with Retry-After, in the form of the endpoint's family."""
    told = answer.status, answer.headers.get("Retry-After"), answer.json.get("message")
    return told == (503, "1", REFUSED) and is_error(answer, route, "unavailable")


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errno.ENOSPC, id="full"),
        pytest.param(errno.EROFS, id="read-only", marks=pytest.mark.long),
        pytest.param(errno.EIO, id="broken", marks=pytest.mark.long),
    ],
)
async def test_whoever_reads_is_answered_and_whoever_writes_is_told_to_come_back(
    store: Store, clock: MovableClock, calls: system.System, error: int
) -> None:
    """Test every endpoint; writes succeed again as soon as the disk does."""
    world = World(store, clock)
    valid_requests = [ValidRequest(world, route) for route in TESTED_ROUTES]
    async with running(store, clock) as client:
        owner = client.holding(world.tokens[OWNER])
        calls.fault = lambda operation, _: error if operation in {"write", "truncate", "delete"} else 0
        async with unhurried():
            answers = [await ask(owner, valid) for valid in valid_requests]
        calls.fault = system.no_fault
        began = time.monotonic()
        assert (await owner.post("artists", {"name": "Amy Beach"})).status == 201
        assert time.monotonic() - began < 5
    for valid, answer in zip(valid_requests, answers, strict=True):
        if valid.route.writes and endpoint(valid.route) not in IDLE:
            assert is_refusal(answer, valid.route), (endpoint(valid.route), answer.body)
        else:
            assert answer.status == valid.status, (endpoint(valid.route), answer.body)


async def test_a_lock_of_another_process_that_is_let_go_soon_is_waited_for(client: Client, file: Path) -> None:
    with locked(file) as release:
        async with unhurried():
            waiting = asyncio.create_task(client.post("artists", {"name": "Amy Beach"}))
            await asyncio.sleep(0.5)
            assert not waiting.done()
            for path in ("albums", "users/me", "playlists", "/readyz"):
                assert (await client.get(path)).status == 200
        await asyncio.to_thread(release)
        assert (await waiting).status == 201


@pytest.mark.long
async def test_a_lock_that_is_held_for_a_minute_is_503_after_five_seconds(client: Client, file: Path) -> None:
    with locked(file) as release:
        held = time.monotonic()
        async with unhurried():
            while time.monotonic() - held < 60:
                began = time.monotonic()
                answer = await client.post("artists", {"name": "Amy Beach"})
                assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
                assert 4.5 < time.monotonic() - began < 7
                assert (await client.get("albums")).status == 200
        await asyncio.to_thread(release)
        began = time.monotonic()
        assert (await client.post("artists", {"name": "Amy Beach"})).status == 201
        assert time.monotonic() - began < 5


@pytest.mark.slow
async def test_a_page_that_is_spoilt_while_it_is_served_is_told_and_never_passed_on(
    store: Store,
    clock: MovableClock,
    world: dict[str, str],
    file: Path,
    seed: int,
    caplog: pytest.LogCaptureFixture,
    *,
    long: bool,
) -> None:
    """Answers are as before or 500, and the log names the remedy; a restored page is read again."""
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    chance, refused = Random(seed), 0
    async with running(store, clock, Settings(server={"answer_cache": 0})) as anybody:
        client = anybody.holding(world["demo"])
        sound = [(await client.get(path)).json for path in READS]
        with file.open("r+b", buffering=0) as disk:
            pages = range(1, len(disk.read()) // PAGE)
            for page in pages if long else chance.sample(pages, 40):
                disk.seek(page * PAGE)
                kept = disk.read(PAGE)
                disk.seek(page * PAGE)
                disk.write(chance.randbytes(PAGE))
                for path, before in zip(READS, sound, strict=True):
                    answer = await client.get(path)
                    refused += answer.status == 500
                    assert answer.status == 500 or answer.json == before
                disk.seek(page * PAGE)
                disk.write(kept)
        assert [(await client.get(path)).json for path in READS] == sound
    assert refused
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == refused
    assert all(line.endswith("failed: The database is damaged. Run: musicsvc db check") for line in told)
