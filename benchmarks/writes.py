"""CPU time and latency of small writes, beside bare aiohttp that answers a no-op POST with the same bytes.

    python benchmarks/writes.py [--workers 1 2] [--rounds 7] [--requests 2000] [--albums 4000] [--only PATTERN]

64 keep-alive clients, durable commits, with token check, rate limits, activity log and metrics. The servers run at once
and get the same requests in turn; a ratio compares the CPU times of one round.
"""

import argparse
import http.client
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import uvloop
from load import cpu_seconds, cpu_since, processes, raw, send
from network_server import Server, percentile, running
from reads import LIMITS, bare, limits
from spread import spread

from musicsvc.clock import SECOND, Clock
from musicsvc.store.engine.store import Store
from musicsvc.store.seeding import synthetic

CLIENTS = 64
PLAYLISTS = 500  # to which tracks are added
API = "/api/v1"


@dataclass(frozen=True)
class Case:
    """A kind of write. `make` returns the path and the body of the next request."""

    name: str
    make: Callable[[], tuple[str, dict[str, Any] | None]]


def cases(tracks: int, playlists: list[int]) -> Iterator[Case]:
    """Yield the writes to measure. `tracks`: their number; `playlists`: the ids of those to which tracks are added."""
    chance, numbers = random.Random(1), count()  # noqa: S311 - a load, no secret
    began = Clock().now() // SECOND - 300 * 86_400

    def track() -> int:
        return chance.randint(1, tracks)

    def play() -> dict[str, Any]:
        return {"track_id": track(), "played_at": began + next(numbers) * 30, "listener": "writer"}

    yield Case("POST playlists", lambda: (f"{API}/playlists", {"name": f"List {next(numbers)}", "public": True}))
    yield Case("POST tracks/{id}/like", lambda: (f"{API}/tracks/{track()}/like", None))
    yield Case(
        "POST playlists/{id}/tracks/add",
        lambda: (f"{API}/playlists/{chance.choice(playlists)}/tracks/add", {"ids": [track()]}),
    )
    yield Case("POST plays, of one play", lambda: (f"{API}/plays", {"plays": [play()]}))


@dataclass
class Measured:
    """The values of all rounds of one server: CPU µs per request, requests per second, seconds of each request."""

    costs: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        """Show medians, minimum and maximum, and percentiles of the latency."""
        late = " / ".join(f"{percentile(self.times, each) * 1000:.1f}" for each in (50, 99))
        return f"µs {spread(self.costs):20} {statistics.median(self.rates):7,.0f}/s p50 / p99 {late} ms"


async def one_round(pid: int, port: int, requests: list[bytes], measured: Measured) -> None:
    """Send the requests and record their cost."""
    pids = processes(pid)
    before, began = sum(map(cpu_seconds, pids)), time.perf_counter()
    measured.times += await send(port, requests, CLIENTS)
    measured.rates.append(len(requests) / (time.perf_counter() - began))
    measured.costs.append(cpu_since(before, *pids) / len(requests) * 1e6)


async def measure(
    case: Case, number: int, servers: dict[str, Server], yardstick: tuple[int, int], given: argparse.Namespace
) -> None:
    """Measure one case in rounds and print its lines."""
    results = {name: Measured() for name in (*servers, "no-op")}
    for turn in range(given.rounds + 1):
        if turn == 1:  # the first round warms up
            results = {name: Measured() for name in results}
        made = [case.make() for _ in range(given.requests)]
        for name, server in servers.items():
            await one_round(server.process.pid, server.port, requests(made, server.port, server.token), results[name])
        pid, port = yardstick
        plain = [(f"/{number}", body) for _, body in made]
        await one_round(pid, port, requests(plain, port, ""), results["no-op"])
    print(case.name)
    for name, measured in results.items():
        ratios = [base / own for base, own in zip(results["no-op"].costs, measured.costs, strict=True)]
        print(f"  {name:10} {measured}  {statistics.median(ratios):.3f} of the no-op", flush=True)


def requests(made: list[tuple[str, dict[str, Any] | None]], port: int, token: str) -> list[bytes]:
    """Return the bytes of the requests."""
    return [raw(path, port, token=token, method="POST", body=encoded(body)) for path, body in made]


def encoded(body: dict[str, Any] | None) -> bytes:
    """Return a body as JSON."""
    return b"" if body is None else json.dumps(body).encode()


def answer(server: Server, path: str, body: dict[str, Any] | None) -> bytes:
    """Return the body of the response to one POST."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection.request("POST", path, encoded(body), headers)
    response = connection.getresponse()
    content = response.read()
    assert response.status in {200, 201}, (path, response.status, content[:200])
    connection.close()
    return content


def main() -> None:
    """Run the servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="one server for each number of workers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=2000, help="in a round")
    parser.add_argument("--albums", type=int, default=synthetic.ALBUMS)
    parser.add_argument("--only", default="", help="cases whose name matches this pattern")
    given = parser.parse_args()

    scale = given.albums / synthetic.ALBUMS
    tracks = round(synthetic.TRACKS * scale)

    def fill(store: Store) -> None:
        synthetic.create(store, scale, 1, on_progress=lambda *_: None)

    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        servers, made = {}, list[bytes]()
        for workers in given.workers:
            place = Path(name) / str(workers)
            settings = {"workers": workers}
            server = opened.enter_context(running(place, settings, tls=False, fill=fill, more=limits(LIMITS)))
            made = [answer(server, f"{API}/playlists", {"name": f"Filled {at}"}) for at in range(PLAYLISTS)]
            servers[f"{workers} worker{'s' if workers > 1 else ''}"] = server
        playlists = [json.loads(each)["playlist"]["id"] for each in made]
        chosen = [case for case in cases(tracks, playlists) if re.search(given.only, case.name)]
        bodies = [answer(next(iter(servers.values())), *case.make()) for case in chosen]
        yardstick = opened.enter_context(bare(bodies, Path(name)))
        for number, case in enumerate(chosen):
            uvloop.run(measure(case, number, servers, yardstick, given))


if __name__ == "__main__":
    main()
