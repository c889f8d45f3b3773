"""Nodes that record plays in one PostgreSQL at once: its CPU time for a play, and how long sessions wait for locks.

    python benchmarks/nodes.py [--nodes 2] [--plays 200000] [--size 1000] [--batches 20] [--clients 2] [--rounds 5]

`--plays` exist before. In turn, one node and `--nodes` of them get `--batches` requests a node of `--size` plays, of
the same tracks on the same days, from `--clients` clients a node. Meanwhile the sessions of PostgreSQL are looked at
every few milliseconds: a session waits if it waits for a lock that a session of another node has. At last this process
records alone, to separate the part of the work in which only one transaction counts. PostgreSQL runs without fsync.
"""

import argparse
import asyncio
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import harness
import psycopg
from clients import percentile, raw, send
from harness import Server
from plays import BATCH, bodies
from worlds import Stream

from musicsvc.clock import DAY
from musicsvc.store import opening
from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting

TICKS = os.sysconf("SC_CLK_TCK")
FEW = 20  # samples of a session, which say nothing
KNOWN = 99  # percent of plays by listeners who have played before
SAMPLE = """
    SELECT a.pid, a.state IS DISTINCT FROM 'idle', a.wait_event_type = 'Lock' AND EXISTS (
        SELECT 1 FROM unnest(pg_blocking_pids(a.pid)) blocker JOIN pg_stat_activity o ON o.pid = blocker
        WHERE o.application_name <> a.application_name
    ) FROM pg_stat_activity a WHERE a.application_name LIKE 'node%'
"""


class Sampler:
    """Looks at the sessions of PostgreSQL while it is open."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}&application_name=sampler"
        self._connection = psycopg.connect(self._url, autocommit=True)
        self._pid = self._connection.info.backend_pid
        self._main = int((_folder(url) / "data" / "postmaster.pid").read_text("ascii").split()[0])
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._seen, self._waiting = Counter[int](), Counter[int]()

    def _look(self) -> None:
        while not self._done.wait(0.005):
            for pid, busy, waits in self._connection.execute(SAMPLE):
                self._seen[pid] += 1 if busy else 0
                self._waiting[pid] += bool(waits)

    def cpu(self) -> float:
        """Return the CPU seconds of PostgreSQL without those of looking."""
        fields = Path(f"/proc/{self._main}/stat").read_text("ascii").rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / TICKS  # cutime and cstime
        return ended + sum(harness.cpu_seconds(pid) for pid in harness.processes(self._main) if pid != self._pid)

    def log(self) -> float:
        """Return the bytes of the write-ahead log."""
        with psycopg.connect(self._url) as connection:
            return float(connection.execute(WAL).fetchall()[0][0])

    @property
    def waiting(self) -> float:
        """The share of its busy time that the session waits which waits most, in percent."""
        return max((100 * self._waiting[pid] / seen for pid, seen in self._seen.items() if seen > FEW), default=0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()
        self._connection.close()


def _folder(url: str) -> Path:
    return Path(unquote(url.partition("host=")[2].partition("&")[0]))


WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
ROWS = (
    "CPU time of PostgreSQL for a play, µs",
    "CPU time of the nodes for a play, µs",
    "log of PostgreSQL for a play, bytes",
    "plays a second",
    "waiting for another node, % of busy time, longest of all sessions",
)


class Bench:
    """Nodes over one database. `values` has those of each row of the table, by the number of nodes."""

    def __init__(self, url: str, nodes: Sequence[Server], given: argparse.Namespace) -> None:
        self._url, self._nodes, self._size = url, nodes, given.size
        self._clients, self._requests = given.clients * given.nodes, given.batches * given.nodes
        self.values: dict[str, dict[int, list[float]]] = {row: defaultdict(list) for row in ROWS}
        self.times: dict[int, list[float]] = defaultdict(list)

    def record(self, count: int, turn: int) -> float:
        """Send the requests to `count` nodes. Return how many plays are recorded a second."""
        made = bodies(self._requests, turn * 10 + count, self._size, KNOWN)
        sending: list[Callable[[], Any]] = []
        for at, node in enumerate(self._nodes[:count]):
            post = partial(raw, "/api/v1/plays", node.port, token=node.token, method="POST")
            some = [post(body=body) for body in made[at::count]]
            sending.append(partial(send, node.port, some, self._clients // count))

        async def run() -> list[float]:
            return [time for times in await asyncio.gather(*(each() for each in sending)) for time in times]

        with Sampler(self._url) as sampler:
            before, began = self._spent(sampler), time.perf_counter()
            times = asyncio.run(run())
            seconds, after = time.perf_counter() - began, self._spent(sampler)
        plays: int = self._requests * self._size
        each = [(now - then) / plays for then, now in zip(before, after, strict=True)]
        if turn:
            self.times[count] += times
            for row, value in zip(ROWS, [*each, plays / seconds, sampler.waiting], strict=True):
                self.values[row][count].append(value)
        return plays / seconds

    def _spent(self, sampler: Sampler) -> tuple[float, float, float]:
        """Return the CPU time of PostgreSQL and of the nodes in µs, and the bytes of the log."""
        return sampler.cpu() * 1e6, sum(node.cpu() for node in self._nodes) * 1e6, sampler.log()


def alone(store: Store, given: argparse.Namespace) -> tuple[float, float]:
    """Record plays. Return the CPU time of this thread and PostgreSQL for a play, and the part that counts, in µs."""
    stream = Stream(given.size * given.batches, DAY, 0, seed=9)

    def unit(rows: Sequence[PlayRow]) -> tuple[float, float, float]:
        ((pid,),) = sql.fetch("SELECT pg_backend_pid()")
        counting.share()
        began = _spent(pid)
        new = bulk.insert_new(Play, PlayRow._fields, rows)
        inserted = _spent(pid)
        counting.add(new, ())
        return began, inserted, _spent(pid)

    times = [store.write(partial(unit, stream.batch(given.size))).result() for _ in range(given.batches)]
    plays = given.size * given.batches / 1e6
    return sum(end - began for began, _, end in times) / plays, sum(end - at for _, at, end in times) / plays


def _spent(pid: int) -> float:
    return float(time.thread_time() + harness.cpu_seconds(pid))


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, plays=200_000, size=BATCH, batches=20, nodes=2, clients=2)
    given = parser.parse_args()
    names = {1: "one node", given.nodes: f"{given.nodes} nodes"}
    ratios = [(f"{given.nodes} nodes / one", names[given.nodes], names[1])]
    with harness.place(given) as folder:
        for checkout in harness.checkouts(given):
            with ExitStack() as opened:
                url = opened.enter_context(harness.own_postgres())
                base = harness.database(checkout, folder, "figures", given.plays, url=url)
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("VACUUM ANALYZE")
                nodes = []
                for number in range(given.nodes):
                    node = harness.Database(f"{url}&application_name=node{number}", base.token, base.filled)
                    nodes.append(opened.enter_context(harness.running(checkout, node, harness.OFF)))
                bench = Bench(url, nodes, given)
                harness.in_turn(given.rounds, {name: partial(bench.record, count) for count, name in names.items()})
                table = harness.Table(checkout.label(), [*names.values()], ratios, unit="median", digits=1)
                for row, values in bench.values.items():
                    table.row(row, {name: values[count] for count, name in names.items()})
                pairs = ([percentile(bench.times[count], at) for at in (50, 99)] for count in names)
                late = (f"{middle:.2f} / {last:.2f}" for middle, last in pairs)
                print("p50 / p99 of requests:", ", ".join(late), "s", flush=True)
                with opening.connect(url) as store:
                    print("CPU time of both for a play, µs: {:.1f}, {:.1f} of it alone".format(*alone(store, given)))


if __name__ == "__main__":
    main()
