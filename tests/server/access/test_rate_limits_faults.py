"""Rate limits while the shared counter fails: no process allows more than it may, one warning is logged."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import apsw
import pytest
from blockbuster import blockbuster_ctx

from musicsvc.clock import Clock
from musicsvc.config import Limits, Server, Settings
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits import sqlite as sqlite_counter
from tests.support import databases
from tests.support.bounds import Bounds
from tests.support.serving import Client, person, running
from tests.support.waiting import PATIENCE, until

sqlite = pytest.mark.only_on("sqlite")
ALONE = "the shared rate-limit counter failed, each process counts separately for now"
REFUSED = "the shared rate-limit counter failed, limited requests get 503 for now"
JOB_FAILED = "background job failed: maintaining the rate limit counts"


@pytest.fixture(autouse=True)
def quick_jobs(bounds: Bounds) -> None:
    bounds(job_seconds=0.05)


@pytest.fixture
def file(store: Store) -> Path:
    return sqlite_counter.file_of(Path(store.url.removeprefix("sqlite:///")))


@asynccontextmanager
async def limited(store: Store, clock: Clock, address: str = "3/hour") -> AsyncIterator[Client]:
    settings = Settings(limits=Limits.model_validate({"local": True, "address": address}), server=Server(workers=2))
    async with running(store, clock, settings) as client:
        yield client


async def statuses(client: Client, count: int) -> list[int]:
    return [(await client.get("openapi.json")).status for _ in range(count)]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith((ALONE, REFUSED, JOB_FAILED))]


def rows(file: Path) -> int:
    """Return the number of keys in the file."""
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return int(connection.execute("SELECT count(*) FROM quota").get)
        finally:
            connection.close()
    except apsw.Error:
        return 0


@sqlite
async def test_limits_hold_while_the_file_cannot_be_created(
    store: Store, clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.mkdir()  # noqa: ASYNC240 - here and below: done at once
    async with limited(store, clock) as client:
        assert await statuses(client, 2) == [200, 200]
        await asyncio.sleep(0.2)  # several times it was tried again
        assert await statuses(client, 2) == [200, 429]
        assert told(caplog) == [f"{ALONE}: {file} cannot be used."]
        file.rmdir()  # noqa: ASYNC240 - done at once
        await until(file.is_file)
        await asyncio.sleep(0.5)
        assert await statuses(client, 4) == [200, 200, 200, 429]
        assert rows(file) == 1


@sqlite
async def test_requests_get_responses_while_the_counter_fails_for_another_reason_than_those_known(
    store: Store, clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(apsw.Connection(str(file))) as changed:
        changed.execute(sqlite_counter.TABLE.replace("INTEGER", "TEXT"))
        changed.execute("INSERT INTO quota VALUES ('address:127.0.0.1', 1, 'one', 'two', 'never')")
        changed.pragma("application_id", sqlite_counter.APPLICATION_ID)
        changed.pragma("user_version", sqlite_counter.VERSION)
    async with limited(store, clock) as client, asyncio.timeout(PATIENCE):
        assert await statuses(client, 4) == [200, 200, 200, 429]
    assert len(told(caplog)) == 1
    assert "TypeError" in told(caplog)[0]


@sqlite
async def test_a_lock_of_another_program_delays_requests_only_briefly(
    store: Store, clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(store, clock, "100/hour") as client:
        assert await statuses(client, 1) == [200]
        other = apsw.Connection(str(file))
        other.execute("BEGIN IMMEDIATE")
        slowest = 0.0
        assert await asyncio.gather(*(statuses(client, 1) for _ in range(20))) == [[200]] * 20
        for _ in range(20):
            began = time.monotonic()
            assert (await client.get("/healthz")).status == 200
            slowest = max(slowest, time.monotonic() - began)
            began = time.monotonic()
            assert await statuses(client, 1) == [200]
            assert time.monotonic() - began < 4
        assert slowest < 2
        assert told(caplog) == [f"{ALONE}: {file} is locked by another program."]
        other.execute("COMMIT")
        other.close()
        before = await client.get("openapi.json")
        async with asyncio.timeout(30):
            while before.headers["X-RateLimit-Remaining"] != "97":  # the third that the file counts
                await asyncio.sleep(0.05)
                before = await client.get("openapi.json")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@sqlite
async def test_a_full_disk_fails_no_request(
    store: Store, clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, token = person(store, clock, "ann@label.test")
    async with limited(store, clock) as client:
        assert await statuses(client, 1) == [200]
        with full_disk():
            assert await statuses(client, 4) == [200, 200, 200, 429]
            assert (await client.holding(token).get("albums")).status == 200
            await asyncio.sleep(0.2)
        assert len(told(caplog)) == 1
        await asyncio.sleep(0.6)
        assert await statuses(client, 3) == [200, 200, 429]  # the file had counted one
        assert rows(file) == 1


@sqlite
@pytest.mark.parametrize("how", ["deleted", "damaged"])
async def test_a_lost_file_is_created_again(store: Store, clock: Clock, file: Path, how: str) -> None:
    async with limited(store, clock) as client:
        assert await statuses(client, 1) == [200]
        if how == "deleted":
            file.unlink()  # noqa: ASYNC240 - done at once
        else:
            other = apsw.Connection(str(file))
            assert other.pragma("user_version") == sqlite_counter.VERSION
            other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            file.write_bytes(file.read_bytes()[:1024] + b"\xff" * 1024)  # noqa: ASYNC240 - done at once
            other.pragma("user_version", sqlite_counter.VERSION)
            other.close()
            assert await statuses(client, 1) == [200]
        await until(file.exists)
        await asyncio.sleep(0.6)
        counted = rows(file)  # in a new file: 1 if the first purge of the server came before the second request
        assert counted == 0 or how == "damaged"
        assert await statuses(client, 4 - counted) == [*[200] * (3 - counted), 429]
        assert rows(file) == 1


@pytest.mark.only_on("postgres")
async def test_a_node_refuses_what_it_cannot_count_while_the_database_server_is_down(
    store: Store, clock: Clock, template: databases.Template, caplog: pytest.LogCaptureFixture
) -> None:
    _, token = person(store, clock, "ann@label.test")
    async with limited(store, clock) as client:
        assert await statuses(client, 1) == [200]
        template.remove(store.url)
        assert await statuses(client, 2) + await statuses(client.holding(token), 1) == [503, 503, 503]
        refused = await client.get("openapi.json")
        assert (refused.headers["Retry-After"], refused.json["message"]) == ("1", "The database is not available.")
        assert (await client.get("/healthz")).status == 200
        assert [text.partition(":")[0] for text in told(caplog)] == [REFUSED]


@pytest.mark.only_on("postgres")
async def test_a_count_that_waits_for_another_program_is_refused_and_counted_again_once_that_ends(
    store: Store, clock: Clock, bounds: Bounds
) -> None:
    psycopg = pytest.importorskip("psycopg")
    bounds(patience_seconds=0.2)
    async with limited(store, clock, "5/hour") as client:
        assert await statuses(client, 1) == [200]
        with psycopg.connect(store.url) as other:
            other.execute("LOCK TABLE quota")
            assert await statuses(client, 2) == [503, 503]
        bounds(patience_seconds=30)
        # The first of the refused ones may have been counted, once the lock was released; the other one never was.
        assert await statuses(client, 6) in ([200] * 3 + [429] * 3, [200] * 4 + [429] * 2)


@pytest.mark.on_both
async def test_counting_does_not_block_the_event_loop(store: Store, clock: Clock) -> None:
    _, token = person(store, clock, "ann@label.test")
    async with limited(store, clock) as client:
        with blockbuster_ctx("musicsvc"):
            assert await statuses(client, 4) == [200, 200, 200, 429]
            body = {"template_id": 1, "title": "Rags", "artist": "Joplin"}
            assert (await client.holding(token).post("cover-art/preview", body)).status == 200
            await asyncio.sleep(0.2)
