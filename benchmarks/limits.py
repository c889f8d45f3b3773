"""Cost of rate limits: a request with and without them, and counting alone, for one process and for several.

    python benchmarks/limits.py [--postgres]

Both servers run at once over one database and get requests in turn, GET /api/v1/users/me with a token, so that other
work on the machine affects both; compare CPU times. `--postgres` starts a PostgreSQL of its own.
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from multiprocessing import Barrier, Process, Queue
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from collections.abc import Iterator

from spread import spread

from musicsvc.clock import Clock
from musicsvc.server.access.rate_limit_counter import shared_counter
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.sqlite import files
from musicsvc.store.rate_limits.window import Hit, Limit
from musicsvc.store.schema import schema
from tests.support import postgres

ROUNDS, REQUESTS, CONNECTIONS = 25, 1600, 16
HITS, KEYS = 20_000, 200
LIMIT = Limit("token", 10**9 - 1, 60_000)
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--postgres", action="store_true", help="count in a PostgreSQL started for this")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.postgres:
            server = postgres.Server()
            try:
                measure(postgres.database_url(server.folder, "postgres"), Path(folder))
            finally:
                server.stop()
        else:
            file = Path(folder) / "musicsvc.db"
            files.create(file)
            measure(f"sqlite:///{file}", Path(folder))


def measure(url: str, folder: Path) -> None:
    """Run all measurements on one store."""
    schema.upgrade(url)
    with opening.connect(url) as store:
        token = store.write(make_token).result()
    for processes in (1, 2, 3):
        print_counting(url, processes)
    with serving(url, folder, "off") as off, serving(url, folder, "on") as on:
        asyncio.run(print_requests({"off": off, "on": on}, token))


def make_token() -> str:
    """Return the token of an account with API access."""
    user = users.create("reader@label.test", now=Clock().now())
    api_access.grant(user, now=Clock().now())
    return tokens.create(user, "benchmark", now=Clock().now())[1]


def print_counting(url: str, processes: int) -> None:
    """Count as fast as possible in several processes."""
    results: Queue[tuple[float, float]] = Queue()
    ready = Barrier(processes)
    started = [Process(target=count, args=(url, ready, results)) for _ in range(processes)]
    for process in started:
        process.start()
    figures = [results.get() for _ in started]
    for process in started:
        process.join()
    wall, cpu = (statistics.mean(figure[part] for figure in figures) for part in (0, 1))
    print(
        f"counting, {processes} process{'es' if processes > 1 else ''}: {cpu / HITS * 1e6:.1f} µs CPU,"
        f" {wall / HITS * 1e6:.1f} µs wall a request each, {processes * HITS / wall:,.0f} a second together"
    )


def count(url: str, ready: Any, results: Queue[tuple[float, float]]) -> None:
    """Count `HITS` requests of some tokens, as a worker of several does."""
    counter = shared_counter(url, lambda: int(time.monotonic() * 1000), workers=2)
    assert counter is not None
    hits = [[Hit(LIMIT, str(number))] for number in range(KEYS)]
    ready.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(HITS):
        counter.count(hits[number % KEYS])
    results.put((time.perf_counter() - wall, time.process_time() - cpu))
    counter.close()


@contextmanager
def serving(url: str, folder: Path, limits: str) -> Iterator[tuple[int, int]]:
    """Start a server with limits for local requests, or without limits; yield its process and its port."""
    own = {"LOCAL": "true", "TOKEN": "999999999/minute"} if limits == "on" else {"ENABLED": "false"}
    variables = {
        "MUSICSVC_DATABASE_URL": url,
        "MUSICSVC_DATA_DIR": str(folder),
        **{f"MUSICSVC_LIMITS__{name}": value for name, value in own.items()},
    }
    line = [sys.executable, "-m", "musicsvc", "serve", "--port", "0"]
    environment = {**os.environ, **variables}  # noqa: TID251 - passed to the child
    with subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        try:
            assert server.stderr is not None
            port = re.search(r"listens on \S+:(\d+)", next(line for line in server.stderr if "listens on" in line))
            assert port is not None
            yield server.pid, int(port[1])
        finally:
            server.terminate()


async def print_requests(servers: dict[str, tuple[int, int]], token: str) -> None:
    """Send requests to both servers in turn."""
    rates: dict[str, list[float]] = {name: [] for name in servers}
    costs: dict[str, list[float]] = {name: [] for name in servers}
    raw = f"GET /api/v1/users/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    for number in range(ROUNDS + 1):
        for name, (pid, port) in servers.items():
            wall, cpu = time.perf_counter(), cpu_of(pid)
            await asyncio.gather(*(ask(port, raw, REQUESTS // CONNECTIONS) for _ in range(CONNECTIONS)))
            if number:  # the first round warms up
                rates[name].append(REQUESTS / (time.perf_counter() - wall))
                costs[name].append((cpu_of(pid) - cpu) / REQUESTS * 1e6)
    for name in servers:
        print(
            f"limits {name}: requests/s {spread(rates[name])}, µs CPU of the server per request {spread(costs[name])}"
        )
    ratios = [on / off for on, off in zip(rates["on"], rates["off"], strict=True)]
    print(f"on against off: {statistics.median(ratios):.3f} of the requests/s, median of {ROUNDS} rounds")


async def ask(port: int, raw: bytes, times: int) -> None:
    """Send the request repeatedly over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(raw)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = re.search(rb"Content-Length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
    writer.close()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
