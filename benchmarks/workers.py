"""CPU time per request of a server with two workers, beside one with one worker over the same database.

    python benchmarks/workers.py [--albums 4000] [--rounds 7] [--requests 2000] [--workers 2] [--connections 16]

Both servers have rate limits, activity log and metrics, and get requests at the same time, so that other work on the
machine disturbs both alike: each worker the same number, over the same number of connections, because the requests of
one turn of the event loop share costs. CPU time is that of all processes of a server; the ratio compares the CPU times
of one round. *hot*: the same request again and again; *cold*: random pages or rows that no cache has; *write*: a like
of a random track.
"""

import argparse
import asyncio
import random
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Callable

import synthetic_catalog
from load import cpu_seconds, cpu_since, processes, raw, send
from network_server import Server, running
from reads import LIMITS, cases, limits
from spread import spread

GOAL = 1.1


def loads(albums: int, requests: int) -> dict[str, Callable[[Server, int], list[bytes]]]:
    """Map the name of each load to a function that returns its requests for a server and a round."""

    def reads(paths: list[str]) -> Callable[[Server, int], list[bytes]]:
        def make(server: Server, turn: int) -> list[bytes]:
            wanted = (paths * requests)[:requests]
            if len(paths) > 1:  # spellings that no cache has
                wanted = [f"{path}&uncached={turn}.{at}" for at, path in enumerate(wanted)]
            return [raw(path, server.port, token=server.token) for path in wanted]

        return make

    def likes(server: Server, turn: int) -> list[bytes]:
        chance = random.Random(turn)  # noqa: S311 - a load, no secret
        paths = [f"/api/v1/tracks/{chance.randint(1, albums * 5)}/like" for _ in range(requests // 4)]
        return [raw(path, server.port, token=server.token, method="POST") for path in paths]

    return {case.name: reads(case.paths) for case in cases(albums, requests)} | {"write like": likes}


async def cost(server: Server, requests: list[bytes], connections: int) -> float:
    """Send the requests. Return the CPU time of all processes of the server for each, in µs."""
    before = sum(map(cpu_seconds, processes(server.process.pid)))
    await send(server.port, requests, connections)
    return cpu_since(before, *processes(server.process.pid)) / len(requests) * 1e6


async def measure(
    name: str,
    make: Callable[[Server, int], list[bytes]],
    servers: tuple[Server, Server],
    given: argparse.Namespace,
) -> None:
    """Measure one load in rounds and print a line."""
    costs: tuple[list[float], list[float]] = ([], [])
    for turn in range(given.rounds + 1):
        both = (
            cost(server, make(server, turn) * workers, given.connections * workers)
            for server, workers in zip(servers, (1, given.workers), strict=True)
        )
        for values, found in zip(costs, await asyncio.gather(*both), strict=True):
            values.append(found)
    for values in costs:
        del values[0]  # the first round warms up
    one, more = costs
    ratios = [several / single for single, several in zip(one, more, strict=True)]
    shown = [spread(values) for values in costs]
    print(f"| {name} | {' | '.join(shown)} | {spread(ratios, 2)} |", flush=True)


def main() -> None:
    """Run the servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=2000, help="of each worker in a round")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16, help="of each worker")
    parser.add_argument("--only", default="", help="loads whose name matches this pattern")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_:
        folder = Path(name)
        url = synthetic_catalog.sqlite(folder, given.albums)
        token = synthetic_catalog.fill(url, given.albums)

        def start(workers: int) -> Server:
            place, settings = folder / f"{workers}-workers", {"workers": workers}
            return open_.enter_context(running(place, settings, tls=False, url=url, token=token, more=limits(LIMITS)))

        servers = start(1), start(given.workers)
        print(f"| request | 1 worker, µs | {given.workers} workers, µs | ratio (goal {GOAL}) |\n|---|---|---|---|")
        for load, make in loads(given.albums, given.requests).items():
            if re.search(given.only, load):
                uvloop.run(measure(load, make, servers, given))


if __name__ == "__main__":
    main()
