"""Hot reads beside other work: their latency, and the CPU time of the server for each beside unrelated writes.

    python benchmarks/beside.py [--albums 4000] [--rounds 3] [--seconds 3] [--requests 4000] [--only PATTERN]

A hot read is the same `GET /albums` again and again, 200 times a second; its time counts from when it is due. Meanwhile
another process reads cold pages, or asks for exports, PDF documents or covers, each as fast as the server answers, or
commits 200 playlists a second past the server. The p99 means something only on a machine without other work. The second
table compares rounds with and without these writes; its last row writes to a table that the response shows.
"""

import argparse
import asyncio
import http.client
import json
import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import harness
import uvloop
from clients import Crowd, Stage, cost_each, percentile, raw, receive
from harness import Inside, Server, answer_inside

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Playlist, User

HOT = "/api/v1/albums"
EXPORT = "/api/v1/producer-intelligence/insights/export"
PER_SECOND, CONNECTIONS = 200, 8
EXPECTED = {200, 201, 503}  # 503: too much of this work is in progress
CLIENTS = {"cold reads": 4, "exports": 2, "PDF": 2, "covers": 4}  # by kind of work
KINDS = {"nothing": "nothing", "writes": "playlist", **{name: name for name in CLIENTS}}
WRITES = [
    ("albums", "playlist"),
    ("tracks/1", "playlist"),
    ("users/me", "playlist"),
    ("genres", "playlist"),
    ("genres", "genre"),
]


def request_of(kind: str, chance: random.Random, pages: int) -> tuple[str, str, Any]:
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


async def ask(stage: Stage, kind: str, port: int, token: str, pages: int) -> None:
    """Send requests of this kind until the crowd shall end."""
    began = asyncio.Event()

    def send(chance: random.Random) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        method, path, body = request_of(kind, chance, pages)
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        content = response.read()
        assert response.status in EXPECTED, (response.status, content[:300])
        if kind == "covers" and response.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
            url = re.sub(r"^https?://[^/]+", "", json.loads(content)["preview_url"])
            connection.request("GET", url)
            connection.getresponse().read()
        connection.close()

    async def one(number: int) -> None:
        chance = random.Random(time.monotonic_ns() + number)
        while not stage.ended.is_set():
            await asyncio.to_thread(send, chance)
            began.set()

    clients = [asyncio.create_task(one(number)) for number in range(CLIENTS[kind])]
    waiting = asyncio.create_task(began.wait())
    await asyncio.wait([*clients, waiting], return_when=asyncio.FIRST_COMPLETED)
    stage.ready()
    await asyncio.gather(*clients)


class Writer:
    """Adds rows past the server, 200 a second; runs in a process of its own (`answer_inside`)."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread()

    def begin(self, store: Store, table: str) -> None:
        """Begin to write."""
        owner = store.read(lambda: User.select().first().id).result()

        def add() -> None:
            name = f"{table}-{time.time_ns()}"
            if table == "playlist":
                Playlist.insert(owner=owner, name=name, created_at=1).execute()
            else:
                Genre.insert(name=name, display_name=name).execute()

        def write() -> None:
            due = time.monotonic()
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                store.write(add).result()
                due += 1 / PER_SECOND

        store.write(add).result()
        self._ended.clear()
        self._thread = threading.Thread(target=write)
        self._thread.start()

    def end(self, _: Store) -> None:
        """Stop."""
        self._ended.set()
        self._thread.join()


async def hot_reads(server: Server, seconds: float) -> list[float]:
    """Send hot reads at a fixed rate. Return the seconds of each since it was due."""
    times: list[float] = []
    request = raw(HOT, server.port, token=server.token)
    start = time.perf_counter() + 0.05

    async def some(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for number in range(first, int(seconds * PER_SECOND), CONNECTIONS):
            due = start + number / PER_SECOND
            await asyncio.sleep(max(0, due - time.perf_counter()))
            writer.write(request)
            await receive(reader)
            times.append(time.perf_counter() - due)
        writer.close()

    await asyncio.gather(*map(some, range(CONNECTIONS)))
    return times


class Case:
    """A server, and the work beside it."""

    def __init__(self, server: Server, writer: Inside, pages: int) -> None:
        self._server = server
        self._writer = writer
        self._pages = pages

    @contextmanager
    def busy(self, kind: str) -> Iterator[None]:
        """Do a kind of work in another process."""
        if kind in {"playlist", "genre"}:
            self._writer.ask("begin", kind)
            yield
            self._writer.ask("end")
        elif kind == "nothing":
            yield
        else:
            with Crowd(ask, kind, self._server.port, self._server.token, self._pages) as crowd:
                yield
                crowd.result()

    def latency(self, kind: str, seconds: float, _: int) -> float:
        """Return the p99 of hot reads beside a kind of work, in milliseconds."""
        with self.busy(kind):
            return percentile(uvloop.run(hot_reads(self._server, seconds)), 99) * 1000

    def cpu(self, path: str, kind: str, requests: int, _: int) -> float:
        """Return the CPU time of the server for each of the same request beside a kind of work, in µs."""
        some = [raw(f"/api/v1/{path}", self._server.port, token=self._server.token)] * requests
        with self.busy(kind):
            return cost_each(self._server, some)


def main() -> None:
    """Run the servers, measure and print."""
    given = harness.parser(__doc__, rounds=3, seconds=3.0, requests=4000, albums=4000).parse_args()
    free = {"limits.exports": "999999/minute", "limits.cover_art": "999999/minute"}
    with harness.place(given) as folder, ExitStack() as opened:
        cases = {}
        for checkout in harness.checkouts(given):
            base = harness.database(checkout, folder, "mixed", given.albums)
            base = replace(base, token=base.filled["accounts"][0]["token"])  # of an account with figures
            server = opened.enter_context(harness.running(checkout, base, {**harness.ON, **free}))
            writer = opened.enter_context(Inside(checkout, "beside.py", base.url))
            cases[checkout.label()] = Case(server, writer, given.albums // 20)
        measure(cases, given)


def measure(cases: dict[str, Case], given: argparse.Namespace) -> None:
    """Print both tables."""
    table = harness.Table("p99 beside", list(cases), unit="ms", digits=1)
    for title, kind in KINDS.items():
        if re.search(given.only, title):
            work = {name: partial(case.latency, kind, given.seconds) for name, case in cases.items()}
            table.row(title, harness.in_turn(given.rounds, work))
    names = [(name, f"{name}, beside writes") for name in cases]
    ratios = [(f"{name}, of the idle rate", name, beside) for name, beside in names]
    table = harness.Table("hot read, writes to", [each for pair in names for each in pair], ratios)
    for path, written in WRITES:
        if re.search(given.only, f"{path}, {written}"):
            work = {}
            for (idle, beside), case in zip(names, cases.values(), strict=True):
                work[idle] = partial(case.cpu, path, "nothing", given.requests)
                work[beside] = partial(case.cpu, path, written, given.requests)
            table.row(f"{path}, {written}", harness.in_turn(given.rounds, work))


if __name__ == "__main__":
    writer = Writer()
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"begin": writer.begin, "end": writer.end})
    else:
        main()
