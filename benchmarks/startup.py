"""Time from the start of `musicsvc serve` to its first 200 of /readyz, after a clean stop and after kill -9.

    python benchmarks/startup.py [--rounds 7] [--gigabytes 1] [--only PATTERN] [--workers 1] [--program PATH …]

The same over a small database and over one of this size, in turn. Before each stop the server commits for a moment, so
that it leaves a write-ahead log. The yardstick is a Python that imports aiohttp, Peewee and pydantic and ends. CPU time
is that of all processes of the server until it is ready. `--program` adds installed programs.
"""

import argparse
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import harness
from harness import Checkout, Database

BARE = "import aiohttp, peewee, pydantic"
ALBUMS = 240
ROWS = 50_000  # of plays, inserted at once
WRITES = 200  # before the stop
FILL = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
INSERT OR IGNORE INTO play (slot, track_id, listener_id, client_key, played_at, duration_ms, reporter)
SELECT ?2 + n, 1 + n % 1000, 1 + n % 70001, CAST(?2 + n AS BLOB), (?2 + n) * 30000000, 180000, 1 FROM number
"""


class Installed(Checkout):
    """An installed program, at `root`, over databases of this checkout."""

    def start(self, *line: str, variables: Mapping[str, str] | None = None, **pipes: Any) -> "subprocess.Popen[str]":
        """Start the program where a checkout starts its package."""
        if line[:2] != ("-m", "musicsvc"):
            return Checkout("", harness.ROOT).start(*line, variables=variables, **pipes)
        return subprocess.Popen([self.root, *line[2:]], env=dict(variables or {}), text=True, **pipes)  # noqa: S603 - asked for


def restart(
    checkout: Checkout, base: Database, ends: signal.Signals, workers: int, elapsed: list[float], turn: int
) -> float:
    """Start, commit, stop by this signal and start again. Return the CPU seconds of the last start."""
    settings = {"server.workers": workers, "backups.every_hours": 0}
    with harness.running(checkout, base, settings) as server:
        for number in range(WRITES):
            server.body("POST", "/api/v1/artists", {"name": f"Artist {number}", "description": "x" * 1000})
        harness.end(server.process, ends)
    with harness.running(checkout, base, settings) as server:
        elapsed += [server.started[0]] * bool(turn)
        return server.started[1]


def yardstick(_: int) -> float:
    """Return the CPU seconds of the yardstick."""
    before = harness.children_cpu()
    subprocess.run([sys.executable, "-c", BARE], check=True)  # noqa: S603 - ours
    return harness.children_cpu() - before


def grow(base: Database, size: int) -> None:
    """Insert plays until the file has this size."""
    database = apsw.Connection(str(base.file))
    database.pragma("synchronous", "OFF")
    slot = 60_000_000
    while base.file.stat().st_size < size:
        database.execute("BEGIN")
        database.execute(FILL, (ROWS, slot))
        database.execute("COMMIT")
        database.pragma("wal_checkpoint(TRUNCATE)")
        slot += ROWS
    database.close()


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, rounds=7, gigabytes=1.0, workers=1)
    parser.add_argument("--program", type=Path, nargs="*", default=[], help="installed programs")
    given = parser.parse_args()
    with harness.place(given) as folder:
        variants = [checkout.label() for checkout in compared(given)]
        ratios = [(f"{name}, of the yardstick", name, "yardstick") for name in variants]
        table = harness.Table("database", [*variants, "yardstick"], ratios, unit="CPU s", digits=2)
        for name, size in (("small", 0), (f"{given.gigabytes:g} GB", int(given.gigabytes * 1e9))):
            for ends in (signal.SIGTERM, signal.SIGKILL):
                if re.search(given.only, title := f"{name}, after {ends.name}"):
                    measure(table, title, work(given, folder, size, ends), given.rounds)


def compared(given: argparse.Namespace) -> list[Checkout]:
    """Return the checkouts, and the installed programs by their paths."""
    return [*harness.checkouts(given), *(Installed(str(each).lstrip("/"), each.resolve()) for each in given.program)]


Restart = Callable[[list[float], int], float]


def work(given: argparse.Namespace, folder: Path, size: int, ends: signal.Signals) -> dict[str, Restart]:
    """Create the databases of this size. Return what measures each checkout."""
    found: dict[str, Restart] = {}
    for checkout in compared(given):
        base = harness.database(checkout, folder / str(size), "catalog", ALBUMS)
        grow(base, size)
        found[checkout.label()] = partial(restart, checkout, base, ends, given.workers)
    return found


def measure(table: harness.Table, title: str, restarts: dict[str, Restart], rounds: int) -> None:
    """Print a row."""
    elapsed: dict[str, list[float]] = {name: [] for name in restarts}
    turns = {name: partial(each, elapsed[name]) for name, each in restarts.items()}
    values = harness.in_turn(rounds, {**turns, "yardstick": yardstick})
    table.row(title, values, *(f"{harness.spread(each, 2)} s until ready" for each in elapsed.values()))


if __name__ == "__main__":
    main()
