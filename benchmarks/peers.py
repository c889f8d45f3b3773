"""CPU time per request and requests per second of other frameworks, and of ours, beside bare aiohttp.

    python -m venv peers && peers/bin/pip install -r benchmarks/peers.txt
    python benchmarks/peers.py [--python peers/bin/python] [--requests 2000] [--write docs/development/performance.md]

All return the same page of 50 artists, 10 KB of JSON, in turn. bare aiohttp, granian and Robyn have its bytes ready;
FastAPI reads it from our database with SQLAlchemy (peer_servers.py). Ours checks token and limits, and writes its log;
it answers *hot* from its cache, and *read each time* from the database. The numbers are ratios to bare aiohttp: 2 is
twice as fast. Peers that are not installed for `--python`, by default the one that runs this, are left out. `--write`
puts the table into a page, between its marks.
"""

import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import harness
from clients import cost_each, raw
from harness import HERE, ROOT, Checkout, Server

PATH = "/api/v1/artists?perPage=50"
PACKAGES = {"granian": "granian", "Robyn": "robyn", "FastAPI": "fastapi, sqlalchemy, uvicorn"}
NAMES = {"granian": "granian (RSGI)", "FastAPI": "FastAPI with SQLAlchemy (uvicorn)"}
BARE, HOT, READ = "bare aiohttp (uvloop)", "musicsvc, hot", "musicsvc, read each time"
BEGIN, END = "<!-- peers: python benchmarks/peers.py --write FILE -->", "<!-- end of peers -->"
PATIENCE = 20.0  # seconds that a peer may take to start


def main() -> None:
    """Run the servers, measure, print the table, and write it if asked to."""
    parser = harness.parser(__doc__, rounds=7, requests=2000, albums=4000)
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--write", type=Path, help="a page with the marks")
    given = parser.parse_args()
    with harness.place(given) as folder, ExitStack() as opened:
        checkout = Checkout("", ROOT)
        base = harness.database(checkout, folder, "catalog", given.albums)
        ours = opened.enter_context(harness.running(checkout, base, harness.ON))
        body = ours.body("GET", PATH)
        kept = folder / "body"
        kept.write_bytes(body)
        bare = opened.enter_context(harness.bare([body]))
        servers: dict[str, tuple[Server, Callable[[int, int], str]]] = {BARE: (bare, lambda *_: "/0")}
        for name in PACKAGES:
            if why := missing(given.python, name):
                print(f"{name} is left out: {why}", flush=True)
                continue
            file = base.file if name == "FastAPI" else kept
            peer = opened.enter_context(running(given.python, name, file))
            assert peer.body("GET", "/") == body, f"{name} returns other bytes"
            servers[NAMES.get(name, name)] = peer, lambda *_: "/"
        servers[HOT] = ours, lambda *_: PATH
        servers[READ] = ours, "{}&uncached={}.{}".format
        costs, rates = measure(servers, given.rounds, given.requests)
    lines = [*table(costs, rates)]
    print("\n".join(lines))
    if given.write:
        given.write.write_text(replaced(given.write.read_text("utf-8"), lines), "utf-8")


def missing(python: str, name: str) -> str:
    """Return why a peer cannot run, or nothing if it can."""
    done = subprocess.run([python, "-c", f"import {PACKAGES[name]}"], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


@contextmanager
def running(python: str, name: str, file: Path) -> Iterator[Server]:
    """Run a peer on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [python, str(HERE / "peer_servers.py"), name, str(port), str(file)]
    process = subprocess.Popen(line, cwd=HERE, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    server, until = Server(process, port), time.monotonic() + PATIENCE
    try:
        while not answers(server):
            assert process.poll() is None, f"{name} ended"
            assert time.monotonic() < until, f"{name} does not start"
            time.sleep(0.1)
        yield server
    finally:
        for pid in reversed(harness.processes(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def answers(server: Server) -> bool:
    """Return whether the server answers."""
    try:
        return bool(server.body("GET", "/"))
    except (OSError, http.client.HTTPException):
        return False


def measure(
    servers: Mapping[str, tuple[Server, Callable[..., str]]], rounds: int, requests: int
) -> tuple[harness.Values, harness.Values]:
    """Return the CPU seconds per request, and the requests per second, of each server in each round."""
    rates: harness.Values = {name: [] for name in servers}

    def ask(name: str, turn: int) -> float:
        server, path = servers[name]
        wanted = [raw(path(PATH, turn, at), server.port, token=server.token) for at in range(requests)]
        # The row before may have taken the place of what is hot in the cache: 16 clients would read it at once.
        server.body("GET", path(PATH, turn, -1))
        began = time.perf_counter()
        found = cost_each(server, wanted)
        if turn:  # as harness.in_turn counts them
            rates[name].append(requests / (time.perf_counter() - began))
        return found

    return harness.in_turn(rounds, {name: partial(ask, name) for name in servers}), rates


def table(costs: harness.Values, rates: harness.Values) -> Iterator[str]:
    """Yield the lines of the table: medians of the ratios of each round, the least and the greatest."""
    yield "| server | by CPU time per request | by requests per second |"
    yield "|---|---|---|"
    for name in costs:
        by_cpu = [bare / own for bare, own in zip(costs[BARE], costs[name], strict=True)]
        by_rate = [own / bare for bare, own in zip(rates[BARE], rates[name], strict=True)]
        yield f"| {name} | {shown(by_cpu)} | {shown(by_rate)} |"


def shown(values: Sequence[float]) -> str:
    """Return a median with the least and the greatest value, with more digits of small ones."""
    return harness.spread(values, 2 if statistics.median(values) >= 0.1 else 3)  # noqa: PLR2004 - a tenth


def replaced(page: str, lines: Sequence[str]) -> str:
    """Return the page with these lines between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"the page lacks the marks {BEGIN} and {END}"
    return "\n".join([before + BEGIN, "", *lines, "", mark + after])


if __name__ == "__main__":
    main()
