"""CPU time of the server per repeated read, with and without unrelated writes of another process.

    python benchmarks/reads_beside_writes.py [--albums 4000] [--rounds 5] [--requests 4000] [--writes 200] [--only PATH]
        [--postgres]

A process of its own writes at the given rate: playlists, which no measured answer shows. Rounds with and without it
alternate; a ratio compares two neighbours (goal: 0.9). The last line is the opposite: writes to a table of the answer,
so that each write outdates it. `--postgres` measures a server over a PostgreSQL started for this.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

import synthetic_catalog
from load import raw
from network_server import Server, running
from reads import LIMITS, cost, limits
from spread import spread

from musicsvc.store import opening
from musicsvc.store.models import Genre, Playlist, User

CASES = (
    ("albums", "playlist"),
    ("tracks/1", "playlist"),
    ("users/me", "playlist"),
    ("genres", "playlist"),
    ("genres", "genre"),
)


def write(url: str, rate: int, table: str) -> None:
    """Add rows at this rate until the process is terminated."""
    with opening.connect(url) as store:
        owner = store.read(lambda: User.select().first().id).result()

        def add() -> None:
            name = f"{table}-{time.time_ns()}"
            if table == "playlist":
                Playlist.insert(owner=owner, name=name, created_at=1).execute()
            else:
                Genre.insert(name=name, display_name=name).execute()

        began, number = time.monotonic(), 0
        print("writing", flush=True)
        while True:
            store.write(add).result()
            number += 1
            time.sleep(max(0.0, began + number / rate - time.monotonic()))


@contextmanager
def writing(url: str, rate: int, table: str) -> Iterator[None]:
    """Run a process that writes while the block runs."""
    line = [sys.executable, __file__, "--write", url, "--writes", str(rate), "--table", table]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603 - ours
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            yield
        finally:
            writer.terminate()


def measure(server: Server, url: str, path: str, table: str, given: argparse.Namespace) -> None:
    """Measure one path in rounds and print a line."""
    requests = [raw(f"/api/v1/{path}", server.port, token=server.token)] * given.requests
    idle: list[float] = []
    beside: list[float] = []
    for _ in range(given.rounds + 1):
        idle.append(uvloop.run(cost(server.process.pid, server.port, requests)))
        with writing(url, given.writes, table):
            beside.append(uvloop.run(cost(server.process.pid, server.port, requests)))
    ratio = statistics.median(alone / other for alone, other in zip(idle[1:], beside[1:], strict=True))
    shown = [spread(some) for some in (idle[1:], beside[1:])]
    print(f"| {path} | {table} | {' | '.join(shown)} | {ratio:.2f} |", flush=True)


def main() -> None:
    """Run the server, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000, help="in a round")
    parser.add_argument("--writes", type=int, default=200, help="per second")
    parser.add_argument("--only", default="", help="requests whose path matches this pattern")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--table", default="playlist", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write(given.write, given.writes, given.table)
        return
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_:
        folder = Path(name)
        if given.postgres:
            url = open_.enter_context(synthetic_catalog.own_postgres())
        else:
            url = synthetic_catalog.sqlite(folder, given.albums)
        token = synthetic_catalog.fill(url, given.albums)
        full = running(folder / "server", {}, tls=False, url=url, token=token, more=limits(LIMITS))
        server = open_.enter_context(full)
        print(f"| request | writes to | idle, µs | beside {given.writes} writes/s, µs | of the idle rate |")
        print("|---|---|---|---|---|")
        for path, table in CASES:
            if re.search(given.only, path):
                measure(server, url, path, table, given)


if __name__ == "__main__":
    main()
