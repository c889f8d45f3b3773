"""Requests of the API beside an import in the browser: their latency while a file of 30,000 rows is imported.

    python benchmarks/uploads.py [--rows 30000] [--albums 4000] [--rounds 3] [--seconds 5] [--only PATTERN]

Requests are due 100 times a second over eight connections; the time of each counts from when it is due. `check` is the
dry run of the first 5,000 rows. The p99 means something only on a machine without other work.
"""

import argparse
import asyncio
import http.client
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import harness
import uvloop
from clients import percentile, raw, receive
from harness import Database, Inside, Server, answer_inside

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token
from musicsvc.store.security import sessions

PER_SECOND, CONNECTIONS = 100, 8
BOUNDARY = "----rows"
PATIENCE = 600.0


def sign_in(store: Store) -> str:
    """Create a session of the account that has the oldest token; run by a process of its own (`answer_inside`)."""

    def create() -> str:
        user = Token.select().order_by(Token.id).first().user
        return sessions.create(users.get(user), address="127.0.0.1", agent="Benchmark", now=time.time_ns() // 1000)

    return store.write(create).result()


class Browser:
    """A signed-in browser that uploads a catalog and imports it."""

    def __init__(self, port: int, session: str) -> None:
        self._port = port
        self._headers = {"Cookie": f"musicsvc={session}", "Origin": f"http://127.0.0.1:{port}", "Accept": "text/html"}

    def send(self, method: str, path: str, body: bytes = b"", kind: str = "") -> tuple[str, str]:
        """Return the page and the address that it leads to."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body or None, self._headers | ({"Content-Type": kind} if kind else {}))
        response = connection.getresponse()
        page = response.read().decode()
        assert response.status in {200, 303}, (response.status, page)
        connection.close()
        return page, response.getheader("Location", "")

    def lines(self) -> list[str]:
        """Return the lines of a head that sign in."""
        return [f"{name}: {value}" for name, value in self._headers.items()]

    def token(self) -> str:
        page, _ = self.send("GET", "/import")
        return str(re.findall(r'name="form_token" value="([0-9a-f]+)"', page)[0])

    def upload(self, rows: int) -> str:
        """Upload a catalog that nobody has, and return the path of its page."""
        turn = time.time_ns()
        lines = (
            f"Track {turn} {row},Artist {turn} {row // 20},Album {row // 10},3:{row % 50 + 10}" for row in range(rows)
        )
        return self.put("rows.csv", "\n".join(("Title,Artist,Album,Duration", *lines)).encode())

    def put(self, name: str, content: bytes) -> str:
        """Upload a file, and return the path of its page."""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n{self.token()}\r\n'
        head += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = b"%b%b\r\n--%b--\r\n" % (head.encode(), content, BOUNDARY.encode())
        return self.send("POST", "/import", body, f"multipart/form-data; boundary={BOUNDARY}")[1]

    def act(self, path: str) -> None:
        self.send("POST", path, f"form_token={self.token()}".encode(), "application/x-www-form-urlencoded")

    def wait(self, path: str) -> str:
        """Wait until nothing is under way, and return the page."""
        deadline = time.monotonic() + PATIENCE
        while "hx-get" in (page := self.send("GET", path)[0]):
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.2)
        return page


def request_of(kind: str, server: Server, number: int, pages: int) -> bytes:
    """Return the next request of a kind."""
    if kind == "hot reads":
        return raw("/api/v1/albums", server.port, token=server.token)
    if kind == "cold reads":
        return raw(f"/api/v1/albums?page={number % pages + 1}&uncached={number}", server.port, token=server.token)
    body = json.dumps({"name": f"Mix {time.time_ns()}"}).encode()
    return raw("/api/v1/playlists", server.port, token=server.token, method="POST", body=body)


async def paced(server: Server, build: Callable[[int], bytes], goes_on: Callable[[float], bool]) -> list[float]:
    """Send requests at a fixed rate while `goes_on`. Return the seconds of each since it was due."""
    times: list[float] = []
    start = time.perf_counter() + 0.05

    async def some(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        number = first
        while goes_on((due := start + number / PER_SECOND) - start):
            await asyncio.sleep(max(0, due - time.perf_counter()))
            writer.write(build(number))
            await receive(reader)
            times.append(time.perf_counter() - due)
            number += CONNECTIONS
        writer.close()

    await asyncio.gather(*map(some, range(CONNECTIONS)))
    return times


class Case:
    """A server, and the browser beside the requests."""

    def __init__(self, server: Server, browser: Browser, given: argparse.Namespace) -> None:
        self._server = server
        self._browser = browser
        self._given = given

    @contextmanager
    def busy(self, work: str) -> Iterator[None]:
        """Check or import a file meanwhile; what is not done at the end is stopped."""
        if work == "idle":
            yield
            return
        path = self._browser.upload(self._given.rows)
        if work == "import":
            assert "Import the file" in self._browser.wait(path)
            self._browser.act(f"{path}/start")
        yield
        self._browser.act(f"{path}/stop")
        self._browser.wait(path)
        self._browser.act(f"{path}/discard")

    def latency(self, kind: str, work: str, _: int) -> float:
        """Return the p99 of requests of a kind beside the work, in milliseconds."""
        build = partial(request_of, kind, self._server, pages=max(1, self._given.albums // 20))
        with self.busy(work):
            goes_on = lambda seconds: seconds < self._given.seconds  # noqa: E731 - short
            return percentile(uvloop.run(paced(self._server, build, goes_on)), 99) * 1000

    def duration(self, _: int) -> float:
        """Return the seconds that an import takes without requests."""
        path = self._browser.upload(self._given.rows)
        self._browser.wait(path)
        began = time.monotonic()
        self._browser.act(f"{path}/start")
        assert "Imported" in self._browser.wait(path)
        return time.monotonic() - began


def main() -> None:
    """Run the server, measure and print."""
    given = harness.parser(__doc__, rounds=3, seconds=5.0, rows=30_000, albums=4000).parse_args()
    with harness.place(given) as folder:
        (checkout,) = harness.checkouts(given)
        base: Database = harness.database(checkout, folder, "mixed", given.albums)
        base = replace(base, token=base.filled["accounts"][0]["token"])
        with Inside(checkout, "uploads.py", base.url) as inside:
            session = inside.ask("sign_in")
        with harness.running(checkout, base, harness.ON | {"limits.session": "999999/minute"}) as server:
            case = Case(server, Browser(server.port, session), given)
            beside = ("idle", "check", "import")
            table = harness.Table(
                "p99 of", beside, [(f"{each}, of idle", each, "idle") for each in beside[1:]], unit="ms", digits=1
            )
            for kind in ("hot reads", "cold reads", "POST /playlists"):
                if re.search(given.only, kind):
                    work = {each: partial(case.latency, kind, each) for each in beside}
                    table.row(kind, harness.in_turn(given.rounds, work))
            if re.search(given.only, "whole"):
                table = harness.Table("whole import of", ["seconds"], unit="s", digits=1)
                table.row(f"{given.rows:,} rows", harness.in_turn(min(1, given.rounds), {"seconds": case.duration}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"sign_in": sign_in})
    else:
        main()
