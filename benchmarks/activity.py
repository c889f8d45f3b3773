"""Cost of the activity log: requests with and without it, written rows, disk space, queries.

    python benchmarks/activity.py [ROWS]

Two servers answer the same request in turn, one of them without the log; the load comes from this process over
persistent connections. Then ROWS calls (300,000) are written to a log as the server writes them, and queried.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

from musicsvc.clock import DAY, SECOND, Clock
from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.jobs.activity_writer import BATCH
from musicsvc.store import opening
from musicsvc.store.abuse import earlier_reads
from musicsvc.store.accounts import tokens, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry, Filter
from musicsvc.store.activity.log_store import Log
from musicsvc.store.engine.sqlite import files
from musicsvc.store.models import Artist
from musicsvc.store.schema import schema

CONNECTIONS, REQUESTS, ROUNDS = 16, 1_600, 30
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/musicsvc.db"
        files.create(Path(folder) / "musicsvc.db")
        schema.upgrade(url)
        with opening.connect(url) as store:
            token = store.write(_fill).result()
        uvloop.run(_compare(url, token))
        with activity_log.build(url, Path(folder) / "rows.db") as log:
            log.prepare()
            _write(log, rows)
            size = (Path(folder) / "rows.db").stat().st_size
            print(f"disk space: {size / rows:.0f} bytes a call")
            _ask(log, rows)


def _fill() -> str:
    user = users.create("ann@label.test", api_access=True, now=Clock().now())
    Artist.create(name="Clara Schumann", manager=user, created_at=1)
    return tokens.create(user, "benchmark", now=Clock().now())[1]


async def _serve(url: str, logged: str) -> None:
    """Run a server until SIGTERM; print its port."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    with opening.connect(url) as store:
        listener = serving.listen("127.0.0.1", 0)
        app = App(Settings(), store, Clock(), "http://127.0.0.1")
        if logged == "off":
            app._dispatcher._observers.remove(app._activity)  # type: ignore[attr-defined]  # noqa: SLF001 - the one part that is measured
        await app.start(listener)
        print(listener.getsockname()[1], flush=True)
        await ended.wait()
        await app.stop()


async def _compare(url: str, token: str) -> None:
    servers = {}
    for logged in ("on", "off"):
        command = [sys.executable, __file__, "serve", url, logged]
        servers[logged] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603, ASYNC220 - this program, before any other task runs
    try:
        ports = {logged: int(server.stdout.readline()) for logged, server in servers.items() if server.stdout}
        walls: dict[str, list[float]] = {"on": [], "off": []}
        spent: dict[str, list[float]] = {"on": [], "off": []}
        for number in range(ROUNDS + 1):
            for logged in ("on", "off") if number % 2 else ("off", "on"):
                before, began = _spent(servers[logged].pid), time.perf_counter()
                await _load(ports[logged], token)
                if number:  # the first round warms up
                    walls[logged].append(REQUESTS / (time.perf_counter() - began))
                    await asyncio.sleep(0.7)  # calls that are still to be written belong to the cost
                    spent[logged].append((_spent(servers[logged].pid) - before) / REQUESTS * 1e6)
    finally:
        for server in servers.values():
            server.terminate()
            server.wait()
    rates = {logged: statistics.median(found) for logged, found in walls.items()}
    costs = {logged: statistics.median(found) for logged, found in spent.items()}
    print(f"requests/s: {rates['on']:,.0f} with the log, {rates['off']:,.0f} without: {rates['on'] / rates['off']:.3f}")
    print(f"CPU time a request: {costs['on']:.0f} µs with the log, {costs['off']:.0f} µs without")


def _spent(pid: int) -> float:
    """Return the CPU seconds of a process (Linux)."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


async def _load(port: int, token: str) -> None:
    head = f"GET /api/v1/artists/1/albums HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    await asyncio.gather(*(_client(port, head, REQUESTS // CONNECTIONS) for _ in range(CONNECTIONS)))


async def _client(port: int, head: bytes, requests: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        writer.write(head)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
    writer.close()


def _entries(start: int, count: int) -> list[Entry]:
    now = Clock().now()
    return [
        Entry(
            at=now - DAY + number * SECOND // 10,
            request_id=f"{number:024x}",
            account_id=number % 500,
            token_id=number % 1_000,
            address=f"198.51.100.{number % 250}",
            method="GET",
            route="/api/v1/playlists/{id}/tracks",
            resource=f"playlists/{number % 10_000}",
            status=404 if number % 20 == 0 else 200,
            retry_after=None,
            milliseconds=1.234,
            size=4_321,
            judged=True,
            private=True,
        )
        for number in range(start, start + count)
    ]


def _write(log: Log, rows: int) -> None:
    spent = cpu = 0.0
    for start in range(0, rows, BATCH):
        batch, before = _entries(start, BATCH), time.process_time()
        began = time.perf_counter()
        log.write(partial(calls.add, batch)).result()
        spent += time.perf_counter() - began
        cpu += time.process_time() - before
    print(f"written: {rows / spent:,.0f} calls/s in batches of {BATCH:,}, {cpu / rows * 1e6:.0f} µs of CPU time each")


def _ask(log: Log, rows: int) -> None:
    since = Clock().now() - DAY + rows * SECOND // 10 - 300 * SECOND
    denied = [entry._replace(status=404, at=entry.at + DAY) for entry in _entries(0, 3_000)]
    questions: dict[str, Callable[[], object]] = {
        "the newest 100": lambda: calls.find(limit=100),
        "the newest 100 of an account": lambda: calls.find(Filter(account_id=7), limit=100),
        "the newest 100 answered 4xx": lambda: calls.find(Filter(statuses=(400, 499)), limit=100),
        "one request id": lambda: calls.find(Filter(request_id=f"{rows // 2:024x}"), limit=1),
        "five minutes of ten tokens": lambda: calls.of_tokens(range(10), since),
        "3,000 denials, read before or not": lambda: earlier_reads.read_before(denied, 90),
        "pruning a slice": lambda: calls.prune(Clock().now()),
    }
    for name, unit in questions.items():
        times = []
        for _ in range(7):
            began = time.perf_counter()
            (log.write if name == "pruning a slice" else log.read)(unit).result()
            times.append(time.perf_counter() - began)
        print(f"{name}: {statistics.median(times) * 1000:.1f} ms of {rows:,} calls")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        uvloop.run(_serve(*sys.argv[2:]))
    else:
        main()
