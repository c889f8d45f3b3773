"""CPU time of the server per read, beside bare aiohttp that returns the same bytes.

    python benchmarks/reads.py [--albums 4000] [--rounds 5] [--requests 1000] [--only NAME] [--postgres] [--folder DIR]

Servers run at once over a synthetic catalog and get the same requests in turn: with rate limits, activity log and
metrics; without limits; with `--postgres` the same two over a PostgreSQL started for this; bare aiohttp on uvloop. A
ratio compares the CPU times of one round. *hot*: the same request again and again; *cold*: random pages or rows, each
at most a few times. A database of a million albums takes minutes to create: `--folder` keeps it.
"""

import argparse
import http.client
import random
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

import synthetic_catalog
from load import cpu_seconds, cpu_since, raw, send
from network_server import Server, running
from spread import spread

BARE = Path(__file__).with_name("bare_server.py")
LIMITS = {"local": "true", "token": "999999999/minute", "address": "999999999/minute"}


@dataclass(frozen=True)
class Case:
    """A kind of read: its name, and its paths, of which the first has the size of the yardstick's body."""

    name: str
    paths: list[str]


def cases(albums: int, requests: int) -> list[Case]:
    """Return the reads to measure."""
    chance = random.Random(1)  # noqa: S311 - a load, no secret
    api = "/api/v1"
    pages = [f"{api}/albums?page={chance.randint(1, albums // 20)}" for _ in range(requests)]
    single = [f"{api}/tracks/{chance.randint(1, albums * 5)}?" for _ in range(requests)]
    some_albums = [f"{api}/albums/{chance.randint(1, albums)}?" for _ in range(requests)]
    artists = [f"{api}/artists?page={chance.randint(1, albums // 80)}" for _ in range(requests)]
    genres = [f"{api}/genres?page={number % 2 + 1}" for number in range(requests)]
    hot = ("/healthz", "users/me", "genres", "artists", "tracks/1", "albums/1", "albums", "albums?perPage=50")
    return [
        *(Case(f"hot {path}", [path if path.startswith("/") else f"{api}/{path}"]) for path in hot),
        Case("cold genres?page=", genres),
        Case("cold tracks/{id}", single),
        Case("cold albums/{id}", some_albums),
        Case("cold artists?page=", artists),
        Case("cold albums?page=", pages),
    ]


@contextmanager
def bare(bodies: list[bytes], folder: Path) -> Iterator[tuple[int, int]]:
    """Run the yardstick with these bodies. Yield its process id and its port."""
    files = [folder / f"body{number}" for number in range(len(bodies))]
    for file, body in zip(files, bodies, strict=True):
        file.write_bytes(body)
    line = [sys.executable, str(BARE), *map(str, files)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        try:
            assert server.stdout is not None
            yield server.pid, int(server.stdout.readline())
        finally:
            server.kill()


def body_of(server: Server, path: str) -> bytes:
    """Return the body of a response."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == HTTPStatus.OK, (path, answer.status, body[:200])
    connection.close()
    return body


async def cost(pid: int, port: int, requests: list[bytes]) -> float:
    """Send the requests. Return the CPU time of the server for each, in µs."""
    before = cpu_seconds(pid)
    await send(port, requests)
    return cpu_since(before, pid) / len(requests) * 1e6


async def measure(
    case: Case, number: int, servers: dict[str, Server], yardstick: tuple[int, int], given: argparse.Namespace
) -> None:
    """Measure one case in rounds and print a line."""
    count = given.requests
    costs: dict[str, list[float]] = {name: [] for name in (*servers, "bare")}
    for turn in range(given.rounds + 1):
        for name, server in servers.items():
            paths = (case.paths * count)[:count]
            if len(case.paths) > 1:  # spellings that no cache has
                paths = [f"{path}&uncached={turn}.{at}" for at, path in enumerate(paths)]
            requests = [raw(path, server.port, token=server.token) for path in paths]
            costs[name].append(await cost(server.process.pid, server.port, requests))
        pid, port = yardstick
        costs["bare"].append(await cost(pid, port, [raw(f"/{number}", port)] * count))
    for values in costs.values():
        del values[0]  # the first round warms up
    shown = [spread(values) for values in costs.values()]
    ratios = [
        statistics.median(base / own for base, own in zip(costs["bare"], costs[name], strict=True)) for name in servers
    ]
    print("|", " | ".join([case.name, *shown, *(f"{ratio:.3f}" for ratio in ratios)]), "|", flush=True)


def main() -> None:
    """Run the servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000, help="in a round")
    parser.add_argument("--only", default="", help="cases whose name matches this pattern")
    parser.add_argument("--postgres", action="store_true", help="also measure a server over PostgreSQL")
    parser.add_argument("--folder", type=Path, help="keep the SQLite database there, and use it again")
    given = parser.parse_args()
    chosen = [case for case in cases(given.albums, given.requests) if re.search(given.only, case.name)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_:
        folder = Path(name)
        variants = {"full": limits(LIMITS), "without limits": limits({"enabled": "false"})}
        url = synthetic_catalog.sqlite(given.folder or folder, given.albums)
        token = synthetic_catalog.fill(url, given.albums)
        servers = {
            variant: open_.enter_context(running(folder / variant, {}, tls=False, url=url, token=token, more=more))
            for variant, more in variants.items()
        }
        if given.postgres:
            url = open_.enter_context(synthetic_catalog.own_postgres())
            token = synthetic_catalog.fill(url, given.albums)
            for variant, more in variants.items():
                own = running(folder / f"postgres-{variant}", {}, tls=False, url=url, token=token, more=more)
                servers[f"postgres, {variant}"] = open_.enter_context(own)
        bodies = [body_of(servers["full"], case.paths[0]) for case in chosen]
        yardstick = open_.enter_context(bare(bodies, folder))
        print("| request | " + " | ".join(f"{name}, µs" for name in (*servers, "bare")) + " | of bare: ", end="")
        print(" | ".join(servers) + " |\n|" + "---|" * (2 * len(servers) + 2))
        for number, case in enumerate(chosen):
            uvloop.run(measure(case, number, servers, yardstick, given))


def limits(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment variables of these settings of rate limits."""
    return {f"MUSICSVC_LIMITS__{name.upper()}": value for name, value in settings.items()}


if __name__ == "__main__":
    main()
