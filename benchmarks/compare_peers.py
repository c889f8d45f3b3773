"""CPU time per request beside the same data in FastAPI with SQLAlchemy, and in Django REST framework.

    pip install -e '.[peers]'
    python benchmarks/compare_peers.py [--albums 4000] [--rounds 4] [--requests 1000] [--peer-requests 24]

The peers (`benchmarks/peers/`) are written as their tutorials do, with eager loading; they read the same database file,
check the token in its table, and return the same JSON, which is compared first. Each runs in one process. They have no
cache, no rate limits and no activity log; the ratio of hot requests therefore compares our cache with none. All servers
run at once and get their requests in turn.
"""

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

import synthetic_catalog
from load import cpu_seconds, cpu_since, processes, raw, send
from network_server import running
from reads import LIMITS, limits
from spread import spread

FOLDER = Path(__file__).with_name("peers")
CONNECTIONS = 16, 4  # to musicsvc as in reads.py; to a peer, so that its threads do not wait for each other
OK = 200
DJANGO = {"DJANGO_SETTINGS_MODULE": "django_peer.settings"}
PATIENCE = 60  # seconds for a server to start
PEERS = {  # the command line of each, which serves the socket with the number FD
    "FastAPI": "-m uvicorn --app-dir {folder} --fd {fd} --log-level error --no-access-log fastapi_app:app",
    "Django REST framework": "-m gunicorn --chdir {folder} --bind fd://{fd} --worker-class gthread --threads 4"
    " --keep-alive 60 --log-level error django.core.wsgi:get_wsgi_application()",
}


class Running(NamedTuple):
    """A server: its process and its port."""

    pid: int
    port: int


class Case(NamedTuple):
    """A list: its path, to which the number of the page is added, and the number of its pages."""

    name: str
    path: str
    pages: int


def cases(albums: int) -> tuple[Case, ...]:
    """Return the lists to measure."""
    return (
        Case("20 albums, about 100 tracks", "/api/v1/albums?", albums // 20),
        Case("40 albums, about 200 tracks", "/api/v1/albums?perPage=40&", albums // 40),
        Case("20 artists", "/api/v1/artists?", max(1, albums // 80)),
    )


@contextmanager
def peer(line: str, database: Path) -> Iterator[Running]:
    """Run a peer over the database."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        fd = listening.fileno()
        environment = {**os.environ, "CATALOG": str(database), **DJANGO}  # noqa: TID251 - the peer's
        command = [sys.executable, *line.format(folder=FOLDER, fd=fd).split()]
        process = subprocess.Popen(command, env=environment, pass_fds=[fd])  # noqa: S603 - ours
        try:
            yield Running(process.pid, listening.getsockname()[1])
        finally:
            process.terminate()
            process.wait()


def body_of(port: int, path: str, token: str) -> bytes:
    """Return the body of a response; the first one also waits until the server is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == OK, (path, answer.status, body[:300])
    return body


def check_same(servers: dict[str, Running], paths: list[str], token: str) -> None:
    """Check that all servers answer with the same JSON."""
    for path in paths:
        first, *others = (json.loads(body_of(server.port, path, token)) for server in servers.values())
        for name, other in zip(list(servers)[1:], others, strict=True):
            assert other == first, (name, path, str(other)[:400], str(first)[:400])


async def cost(server: Running, paths: list[str], token: str, connections: int) -> float:
    """Send the requests. Return the CPU time of the server and its workers for each, in µs."""
    pids = processes(server.pid)
    before = sum(map(cpu_seconds, pids))
    await send(server.port, [raw(path, server.port, token=token) for path in paths], connections)
    return cpu_since(before, *pids) / len(paths) * 1e6


async def measure(case: Case, servers: dict[str, Running], token: str, given: argparse.Namespace) -> None:
    """Measure one list in rounds, and print a line for hot and one for cold requests."""
    chance = random.Random(1)  # noqa: S311 - a load, no secret
    ours, *peers = servers
    load = list(zip((given.requests, given.peer_requests), CONNECTIONS, strict=True))
    costs: dict[str, list[dict[str, float]]] = {"hot": [], "cold": []}
    for turn in range(given.rounds + 1):
        for kind, rounds in costs.items():
            measured = {}
            for name, server in servers.items():
                count, connections = load[name != ours]
                pages = [1 if kind == "hot" else chance.randint(1, case.pages) for _ in range(count)]
                more = "" if kind == "hot" else f"&uncached={turn}."  # spellings that no cache has
                paths = [f"{case.path}page={page}{more and more + str(at)}" for at, page in enumerate(pages)]
                measured[name] = await cost(server, paths, token, connections)
            if turn:  # the first round warms up
                rounds.append(measured)
    for kind, rounds in costs.items():
        cells = [f"{kind} {case.name}"]
        for name in servers:
            values = [each[name] for each in rounds]
            cells.append(spread(values))
        cells += [f"{statistics.median(each[name] / each[ours] for each in rounds):,.0f}" for name in peers]
        print("|", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Run the servers, compare their answers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--requests", type=int, default=1000, help="of musicsvc in a round")
    parser.add_argument("--peer-requests", type=int, default=24, help="of each peer in a round")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        url = synthetic_catalog.sqlite(folder, given.albums)
        token = synthetic_catalog.fill(url, given.albums)
        ours = opened.enter_context(running(folder / "ours", {}, tls=False, url=url, token=token, more=limits(LIMITS)))
        servers = {"musicsvc": Running(ours.process.pid, ours.port)}
        for peer_name, line in PEERS.items():
            servers[peer_name] = opened.enter_context(peer(line, Path(url.removeprefix("sqlite:///"))))
        chosen = cases(given.albums)
        check_same(servers, [f"{case.path}page={page}" for case in chosen for page in (1, case.pages)], token)
        print("| request, µs of CPU |", " | ".join([*servers, *(f"{each} / musicsvc" for each in PEERS)]), "|")
        print("|" + "---|" * (2 * len(servers)))
        for case in chosen:
            uvloop.run(measure(case, servers, token, given))


if __name__ == "__main__":
    main()
