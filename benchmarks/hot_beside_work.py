"""Latency of hot reads beside other work.

    python benchmarks/hot_beside_work.py [--albums 4000] [--rounds 3] [--seconds 3] [--only KIND]

A hot read is the same `GET /albums` again and again, 200 times a second; its time counts from when it is due. Meanwhile
another process writes to the database 200 times a second, reads cold pages, or asks for exports, PDF documents or
covers, each as fast as the server answers. The p99 means something only on a machine without other work.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator
from multiprocessing.synchronize import Event

import mixed_world
from load import LENGTH, raw
from network_server import Server, percentile, running
from reads import LIMITS, limits
from spread import spread

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.playlists import playlists

HOT = "/api/v1/albums"
PER_SECOND, CONNECTIONS = 200, 8
EXPORT = f"{mixed_world.INSIGHTS}/export"
EXPECTED = {200, 201, 503}  # 503: too much of this work is in progress
CLIENTS = {"nothing": 0, "writes": 0, "cold reads": 4, "exports": 2, "PDF": 2, "covers": 4}  # by kind of work
Request = tuple[str, str, Any]  # method, path, body
SPAWN = multiprocessing.get_context("spawn")


def request_of(kind: str, chance: random.Random, pages: int) -> Request:
    """Return the next request of a kind of work."""
    match kind:
        case "cold reads":
            return "GET", f"{HOT}?page={chance.randint(1, pages)}&uncached={chance.random()}", None
        case "exports":
            return "POST", f"{EXPORT}/csv", {"type": "tracks", "period": "1-year"}
        case "PDF":
            return "POST", f"{EXPORT}/pdf", {"period": "1-year"}
    cover = {"template_id": chance.randint(1, 8), "title": f"Cover {chance.random():.9f}", "artist": "Anna Bon"}
    return "POST", "/api/v1/cover-art/preview", cover


def ask(kind: str, port: int, token: str, pages: int, began: Event) -> None:
    """Send requests of this kind until the process is ended."""
    chance = random.Random(time.monotonic_ns())  # noqa: S311 - a load, no secret
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while True:
        method, path, body = request_of(kind, chance, pages)
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status in EXPECTED, (answer.status, content[:300])
        if kind == "covers" and answer.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
            url = re.sub(r"^https?://[^/]+", "", json.loads(content)["preview_url"])
            connection.request("GET", url)
            connection.getresponse().read()
        began.set()


def write(url: str, playlist: int, track: int, began: Event) -> None:
    """Add a track to a playlist, 200 times a second, until the process is ended."""
    with opening.connect(url) as store:
        due = time.perf_counter()
        while True:
            add = partial(playlists.append, playlist, [track], actor=None, now=Clock().now())
            store.write(add).result()
            began.set()
            due += 1 / PER_SECOND
            time.sleep(max(0, due - time.perf_counter()))


def work(kind: str, url: str, port: int, account: mixed_world.Account, pages: int, began: Event) -> None:
    """Do this kind of work until the process is ended."""
    if kind == "writes":
        write(url, account.playlists[0], account.tracks.ids[0], began)
    for _ in range(CLIENTS[kind]):
        Thread(target=ask, args=(kind, port, account.token, pages, began)).start()


@contextmanager
def beside(kind: str, url: str, server: Server) -> Iterator[None]:
    """Run the work in another process."""
    if kind == "nothing":
        yield
        return
    began = SPAWN.Event()
    world = server.filled
    arguments = (kind, url, server.port, world.accounts[0], len(world.pages.ids), began)
    process = SPAWN.Process(target=work, args=arguments)
    process.start()
    try:
        assert began.wait(60), kind
        yield
    finally:
        process.kill()
        process.join()


async def hot_reads(server: Server, seconds: float) -> list[float]:
    """Send hot reads at a fixed rate. Return the seconds of each since it was due."""
    times: list[float] = []
    request = raw(HOT, server.port, token=server.filled.accounts[1].token)
    start = time.perf_counter() + 0.05

    async def some(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for number in range(first, int(seconds * PER_SECOND), CONNECTIONS):
            due = start + number / PER_SECOND
            await asyncio.sleep(max(0, due - time.perf_counter()))
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            assert head.startswith(b"HTTP/1.1 200"), head
            assert length is not None, head
            await reader.readexactly(int(length[1]))
            times.append(time.perf_counter() - due)
        writer.close()

    await asyncio.gather(*map(some, range(CONNECTIONS)))
    return times


def measure(kinds: list[str], url: str, server: Server, given: argparse.Namespace) -> None:
    """Measure beside each kind of work in turn, and print the table."""
    times: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for _ in range(given.rounds):
        for kind in kinds:
            with beside(kind, url, server):
                times[kind].append(uvloop.run(hot_reads(server, given.seconds)))
    print("| beside | p50, ms | p99, ms | longest, ms |\n|---|---|---|---|")
    for kind, rounds in times.items():
        every = [each for some in rounds for each in some]
        late = [percentile(some, 99) * 1000 for some in rounds]
        print(f"| {kind} | {percentile(every, 50) * 1000:.1f} | {spread(late, 1)} | {max(every) * 1000:.1f} |")


def main() -> None:
    """Run the server, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--only", default="", help="kinds of work that match this pattern, beside `nothing`")
    given = parser.parse_args()
    kinds = [kind for kind in CLIENTS if kind == "nothing" or re.search(given.only, kind)]
    fill = partial(mixed_world.fill, albums=given.albums)
    more = limits({**LIMITS, "exports": "999999/minute", "cover_art": "999999/minute"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "server"
        with running(folder, {}, tls=False, fill=fill, more=more) as server:
            measure(kinds, f"sqlite:///{folder / 'musicsvc.db'}", server, given)


if __name__ == "__main__":
    main()
