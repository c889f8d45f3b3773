"""/metrics of several processes: sums are exact, whichever worker answers and even after one is killed."""

import asyncio
import math
import os
import re
import signal
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import pytest

from musicsvc import scratch
from musicsvc.clock import DAY, MINUTE, Clock, isoformat
from musicsvc.server.call import Call
from musicsvc.server.metrics import multiprocess
from musicsvc.server.metrics.multiprocess import SIZES, SharedMetrics
from musicsvc.server.metrics.registry import METHODS, Metrics
from musicsvc.server.responses.errors import STATUSES
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.support.program import PATIENCE, Program, held, until
from tests.support.prometheus import Figures, read, scraped, series, total
from tests.support.serving import Client

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
REQUESTS = "musicsvc_requests_total"


@pytest.fixture
def program(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
        until(lambda: has_started(program.root))
        yield program


def has_started(root: str) -> bool:
    """Return whether both workers count, so that one can be stopped without the locks of its start."""
    with urllib.request.urlopen(f"{root}/metrics", timeout=PATIENCE) as answer:  # noqa: S310 - our own server
        workers = set(re.findall(rb'process_resident_memory_bytes{worker="(\d)"}', answer.read()))
    return len(workers) == 2


@pytest.fixture
async def client(program: Program) -> AsyncIterator[Client]:
    """Return a client that opens a connection for each request."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield Client(session, program.root)


async def answered_by_both(client: Client, pids: list[int], path: str, count: int) -> None:
    for pid in pids:
        with held(pid):
            for _ in range(count):
                assert (await client.get(path)).status == 200


def folders_of(pids: set[str]) -> list[Path]:
    """Return the folders in which these processes count."""
    every = multiprocess.MEMORY.glob(f"{multiprocess.PREFIX}*")
    return [folder for folder in every if {file.read_text() for file in folder.glob("*.pid")} == pids]


@pytest.mark.slow
async def test_the_sum_over_all_workers_is_exact_also_when_one_was_killed(program: Program, client: Client) -> None:
    route = "/api/v1/genres"
    await answered_by_both(client, program.workers, route, 7)
    await reported(client, route, 14)
    killed = program.workers[0]
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(set(program.workers) - {killed}) == 2)
    assert total(await scraped(client), REQUESTS, route=route) == 14
    await answered_by_both(client, program.workers, route, 3)
    await reported(client, route, 20)
    for _ in range(4):
        figures = await scraped(client)
        assert total(figures, REQUESTS, route=route, status="200") == 20
        assert total(figures, "musicsvc_request_seconds_count", route=route) == 20
    assert sum(1 for each in series(figures, REQUESTS) if each["route"] == route) == 1


async def reported(client: Client, route: str, count: int) -> None:
    """Wait until all workers have reported their requests, which they do once a second."""
    while total(await scraped(client), REQUESTS, route=route, status="200") < count:  # noqa: ASYNC110 - of processes
        await asyncio.sleep(0.1)
    assert total(await scraped(client), REQUESTS, route=route, status="200") == count


@pytest.mark.slow
async def test_plays_and_failed_sign_ins_are_summed_over_all_workers(
    program: Program, client: Client, store: Store
) -> None:
    now = Clock().now()
    token, track = store.write(lambda: _reporter(now)).result()
    wrong = {"email": "ann@label.test", "password": "a wrong phrase", "token_name": "first"}
    for number, pid in enumerate(program.workers):
        with held(pid):  # the other worker answers
            plays = [{"track_id": track, "played_at": isoformat(now - (9 * number + at) * MINUTE)} for at in range(2)]
            sound = [play | {"listener": "ada"} for play in plays]
            faulty = [{"track_id": 99, "played_at": isoformat(now)}, sound[0] | {"played_at": isoformat(now + DAY)}]
            sent = await client.holding(token).post("plays", {"plays": [*sound, *faulty, faulty[1]]})
            assert (sent.status, sent.json["accepted"], len(sent.json["refused"])) == (201, 2, 3)
            assert (await client.holding(None).post("auth/login", wrong)).status == 422
    for _ in range(4):
        figures = await scraped(client)
        assert total(figures, "musicsvc_plays_accepted_total") == 4
        assert total(figures, "musicsvc_plays_refused_total", reason="future") == 4
        assert total(figures, "musicsvc_plays_refused_total") == 6
        assert total(figures, "musicsvc_sign_ins_failed_total") == 2


def _reporter(now: int) -> tuple[str, int]:
    """Create an account that may report plays of others, and a track. Return its token, and the track's id."""
    user = users.create("ann@label.test", api_access=True, now=now)
    api_access.grant(user, plays=True, now=now)
    track = Track.create(name="Rag", duration=1, created_at=now).id
    return tokens.create(user, "player", now=now)[1], int(track)


@pytest.mark.slow
async def test_what_only_a_living_worker_has_goes_with_it(program: Program, client: Client) -> None:
    await scraped(client)
    first, second = program.workers

    def of_memory(figures: Figures) -> set[str]:
        return {each["worker"] for each in series(figures, "process_resident_memory_bytes")}

    figures = await scraped(client)
    assert of_memory(figures) == {"0", "1"}
    assert total(figures, "musicsvc_connections") <= 2
    os.kill(first, signal.SIGKILL)
    until(lambda: len(set(program.workers) - {first}) == 2)
    figures = await scraped(client)
    assert of_memory(figures) <= {"0", "1"}
    assert total(figures, "musicsvc_connections") <= 2
    assert second in program.workers


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_folder_is_gone_in_the_end(program: Program, end: int) -> None:
    workers = {str(pid) for pid in program.workers}
    until(lambda: folders_of(workers))
    (mine,) = folders_of(workers)
    assert mine.stat().st_mode & 0o777 == 0o700
    program.end(end)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    scratch.remove_leftovers(multiprocess.MEMORY, multiprocess.PREFIX)  # as the next server does
    assert not mine.exists()


def test_a_folder_that_is_in_use_is_left_alone() -> None:
    with SharedMetrics.create(1) as shared:
        assert shared is not None
        scratch.remove_leftovers(shared.folder.parent)
        assert shared.folder.exists()
    assert not shared.folder.exists()


def test_a_folder_of_a_running_server_of_version_0_1_0_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such a server locks a file in the folder, not the folder."""
    monkeypatch.setattr(multiprocess, "MEMORY", tmp_path)
    old = tmp_path / "musicsvc-metrics-abcdefgh"
    old.mkdir()
    with SharedMetrics.create(1) as shared:
        assert shared is not None
        assert old.exists()


def test_without_room_each_worker_counts_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(multiprocess, "MEMORY", tmp_path / "missing")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "missing"))
    with SharedMetrics.create(1) as shared:
        assert shared is None


@pytest.mark.slow
def test_a_worker_that_joins_is_never_read_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement writes its files while the metrics of the others are read."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    with SharedMetrics.create(2) as shared, ThreadPoolExecutor(1) as joining:
        assert shared is not None
        metrics = Metrics(shared.join(0))
        ended = threading.Event()

        def join() -> int:
            times = 0
            while not ended.is_set():
                shared.worker_exited(1)
                assert shared.join(1) is not None
                times += 1
            return times

        joined = joining.submit(join)
        try:
            for _ in range(200):
                figures = read(metrics.text().decode())
                assert all(math.isfinite(value) for value in figures.values())
                assert set(shared.pids().values()) <= {str(os.getpid())}
        finally:
            ended.set()
        assert joined.result() > 1
    Metrics()  # the library counts in memory again


@pytest.mark.slow
def test_the_room_that_is_reserved_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is killed by a mapped page without space, so every possible series must fit."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    with SharedMetrics.create(1) as shared:
        assert shared is not None
        metrics = Metrics(shared.join(0))
        for status in (*STATUSES.values(), 200, 201, 303, 304, 431, 499, 500):
            for route in (None, *ROUTES):
                for method in METHODS if route is None else {route.method, route.method.replace("GET", "HEAD")}:
                    metrics(Call(1, 1.0, "id", method, "127.0.0.1", route, status=status))
        figures = read(metrics.text().decode())
        assert len(series(figures, REQUESTS)) > 2_000
        for kind, size in SIZES.items():
            assert (shared.folder / f"{kind}_0.db").stat().st_size == size
    Metrics()  # the library counts in memory again


def test_a_worker_that_exits_leaves_its_counters_alone() -> None:
    with SharedMetrics.create(1) as shared:
        assert shared is not None
        for name in ("gauge_livesum_0.db", "0.pid"):
            shared._put(name, b"7")
        assert shared.pids() == {"0": "7"}
        shared.worker_exited(0)
        assert {file.name for file in shared.folder.glob("*_0.db")} == {"counter_0.db", "histogram_0.db"}
        shared.worker_exited(0)  # it may exit before it has joined
    assert not shared.folder.exists()
    assert shared.join(0) is None


def test_without_space_there_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocess, "SIZES", {"no/folder": 1})  # cannot be written
    assert SharedMetrics._allocate(1, tmp_path) is None
    assert list(tmp_path.iterdir()) == []
