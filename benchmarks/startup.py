"""Time from the start of `musicsvc serve` to its first 200 of /readyz, after a clean stop and after kill -9.

    python benchmarks/startup.py [--rounds 7] [--gigabytes 1] [--only PATTERN] [--folder DIR] [--workers 1]

The same over a small database and over one of this size, in turn. Before kill -9 the server commits for a moment, so
that it leaves a write-ahead log. The yardstick is a Python that imports aiohttp, Peewee and pydantic and ends. CPU time
is that of all processes of the server until it is ready. `--folder` keeps the databases.
"""

import argparse
import http.client
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import apsw

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

import synthetic_catalog
from load import cpu_seconds, processes
from spread import spread

BARE = "import aiohttp, peewee, pydantic"
ALBUMS = 240
ROWS = 50_000  # of plays, inserted at once
WRITES = 200  # before kill -9
FILL = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
INSERT OR IGNORE INTO play (slot, track_id, listener_id, client_key, played_at, duration_ms, reporter)
SELECT ?2 + n, 1 + n % 1000, 1 + n % 70001, CAST(?2 + n AS BLOB), (?2 + n) * 30000000, 180000, 1 FROM number
"""


class Start(NamedTuple):
    """Seconds from the start of a server until it was ready."""

    elapsed: float
    cpu: float


class Program:
    """A running server."""

    def __init__(self, url: str, folder: Path, workers: int) -> None:
        self.port = free_port()
        more = {"MUSICSVC_DATA_DIR": str(folder), "MUSICSVC_DATABASE_URL": url, "MUSICSVC_BACKUPS__EVERY_HOURS": "0"}
        line = [sys.executable, "-m", "musicsvc", "serve", "--port", str(self.port), "--workers", str(workers)]
        began = time.perf_counter()
        environment = os.environ | more  # noqa: TID251 - for the server
        self.process = subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        while not self._is_ready():
            time.sleep(0.002)
        self.start = Start(time.perf_counter() - began, sum(map(cpu_seconds, processes(self.process.pid))))

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, "the server ended"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == HTTPStatus.OK
        except ConnectionRefusedError:
            return False
        finally:
            connection.close()

    def write(self, token: str) -> None:
        """Commit again and again, one row at a time."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for number in range(WRITES):
            body = json.dumps({"name": f"Artist {number}", "description": "x" * 1000})
            connection.request("POST", "/api/v1/artists", body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == HTTPStatus.CREATED, answer.status
        connection.close()

    def end(self, number: int) -> None:
        """Send the signal and wait."""
        self.process.send_signal(number)
        self.process.wait(60)


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def bare() -> Start:
    """Start the yardstick and wait for its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True)  # noqa: S603 - ours
    elapsed, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def grow(file: Path, size: int) -> None:
    """Insert plays until the file has this size."""
    database = apsw.Connection(str(file))
    database.pragma("synchronous", "OFF")
    slot = 60_000_000
    while file.stat().st_size < size:
        database.execute("BEGIN")
        database.execute(FILL, (ROWS, slot))
        database.execute("COMMIT")
        database.pragma("wal_checkpoint(TRUNCATE)")
        slot += ROWS
    database.close()


@contextmanager
def folder_of(given: Path | None) -> Iterator[Path]:
    """Yield the given folder, or else a temporary one."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="databases whose name matches this pattern")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with folder_of(given.folder) as folder:
        worlds = {}
        for name, size in (("small", 0), (f"{given.gigabytes:g} GB", int(given.gigabytes * 1e9))):
            if not re.search(given.only, name):
                continue
            url = synthetic_catalog.sqlite(folder / name, ALBUMS)
            worlds[name] = url, synthetic_catalog.fill(url, ALBUMS)
            grow(Path(url.removeprefix("sqlite:///")), size)
        measure(worlds, folder, given)


def measure(worlds: dict[str, tuple[str, str]], folder: Path, given: argparse.Namespace) -> None:
    """Start the servers in turn, and print a row for each way to start."""
    found: dict[str, list[Start]] = {}
    for _ in range(given.rounds):
        found.setdefault("yardstick", []).append(bare())
        for name, (url, token) in worlds.items():
            program = Program(url, folder, given.workers)
            for ends in (signal.SIGTERM, signal.SIGKILL):
                program.write(token)
                program.end(ends)
                program = Program(url, folder, given.workers)
                found.setdefault(f"{name}, after {ends.name}", []).append(program.start)
            program.end(signal.SIGTERM)
    print("| database | seconds until ready | CPU seconds | CPU, of the yardstick |\n|---|---|---|---|")
    for name, starts in found.items():
        ratio = statistics.median(own.cpu / base.cpu for own, base in zip(starts, found["yardstick"], strict=True))
        print(
            f"| {name} | {spread([each.elapsed for each in starts], 2)} | {spread([each.cpu for each in starts], 2)} |",
            end="",
        )
        print(f" {ratio:.2f} |")


if __name__ == "__main__":
    main()
