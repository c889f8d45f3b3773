"""Nodes that record plays in one PostgreSQL at once: its CPU time for a play, and how long sessions wait for locks.

    python benchmarks/nodes.py [--nodes 2] [--plays 200000] [--batches 20] [--clients 2] [--rounds 5]

`--plays` exist before. In turn, one node and `--nodes` of them get the same requests of 1,000 plays, of the same tracks
on the same days, from `--clients` clients for each node. Meanwhile the sessions of PostgreSQL are looked at every few
milliseconds: a session waits if it waits for a lock that a session of another node has. PostgreSQL runs without fsync.
"""

import asyncio
import statistics
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
        self._connection = psycopg.connect(f"{url}&application_name=sampler", autocommit=True)
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
        return sum(harness.cpu_seconds(pid) for pid in harness.processes(self._main) if pid != self._pid)

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


class Bench:
    """Nodes over one database. `found` has the values of each kind by the number of nodes."""

    def __init__(self, url: str, nodes: Sequence[Server], batches: int, clients: int) -> None:
        self._url, self._nodes, self._batches, self._clients = url, nodes, batches, clients
        self.waiting: dict[int, list[float]] = defaultdict(list)
        self.times: dict[int, list[float]] = defaultdict(list)
        self.speed: dict[int, list[float]] = defaultdict(list)

    def record(self, count: int, turn: int) -> float:
        """Send the requests to `count` nodes. Return the CPU time of PostgreSQL for a play, in µs."""
        clients, total = len(self._nodes) * self._clients, len(self._nodes) * self._batches
        made = bodies(total, seed=turn * 10 + count, known=KNOWN)
        sending: list[Callable[[], Any]] = []
        for at, node in enumerate(self._nodes[:count]):
            post = partial(raw, "/api/v1/plays", node.port, token=node.token, method="POST")
            some = [post(body=body) for body in made[at::count]]
            sending.append(partial(send, node.port, some, clients // count))

        async def run() -> list[float]:
            return [time for times in await asyncio.gather(*(each() for each in sending)) for time in times]

        with Sampler(self._url) as sampler:
            before, began = sampler.cpu(), time.perf_counter()
            times = asyncio.run(run())
            spent, seconds = sampler.cpu() - before, time.perf_counter() - began
        if turn:
            self.times[count] += times
            self.speed[count].append(total * BATCH / seconds)
            self.waiting[count].append(sampler.waiting)
        return spent / (total * BATCH) * 1e6


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, plays=200_000, batches=20, nodes=2, clients=2)
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
                bench = Bench(url, nodes, given.batches, given.clients)
                table = harness.Table(checkout.label(), [*names.values()], ratios, digits=1)
                work = {name: partial(bench.record, count) for count, name in names.items()}
                table.row("CPU time of PostgreSQL for a play", harness.in_turn(given.rounds, work))
                for count, name in names.items():
                    print(
                        f"{name}: {statistics.median(bench.speed[count]):,.0f} plays/s, p50 / p99"
                        f" {percentile(bench.times[count], 50):.2f} / {percentile(bench.times[count], 99):.2f} s,"
                        f" most waiting for another node {harness.spread(bench.waiting[count], 1)} %",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
