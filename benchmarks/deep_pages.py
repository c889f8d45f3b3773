"""Effect of anonymous clients on the last pages of `GET /artists` on honest reads.

    python benchmarks/deep_pages.py [--artists 250000] [--clients 4] [--seconds 15] [--store sqlite|postgres]

Each artist has an album and a track. The attackers request the last pages one after the other over persistent
connections, without a pause; the honest client sends fifty requests a second. `--store postgres` starts a PostgreSQL of
its own. Exit 1 if a request of the honest client fails.
"""

import argparse
import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

from network_server import Server, output_of, percentiles, running

from musicsvc.store.engine import sql
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.store import Store
from tests.support import postgres

PER_PAGE, DEEPEST = 20, 50  # number of last pages that the attackers request
ROUNDS = 9
NUMBERS = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n) n"
FILL = """
INSERT INTO artist (name, verified, created_at) SELECT 'Artist ' || i, FALSE, 1 FROM {numbers};
INSERT INTO album (name, created_at) SELECT 'Album ' || i, 1 FROM {numbers};
INSERT INTO track (name, duration, currency, licensing_type, exclusive_status, fingerprint_status, created_at)
    SELECT 'Track ' || i, 1000, 'USD', 'both', 'available', 'completed', 1 FROM {numbers};
INSERT INTO album_artist (album_id, artist_id, position)
    SELECT (SELECT MAX(id) FROM album) - i + 1, (SELECT MAX(id) FROM artist) - i + 1, 0 FROM {numbers};
INSERT INTO track_artist (track_id, artist_id, position)
    SELECT (SELECT MAX(id) FROM track) - i + 1, (SELECT MAX(id) FROM artist) - i + 1, 0 FROM {numbers};
ANALYZE
"""


def main() -> int:
    """Measure; return the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--artists", type=int, default=250_000)
    options.add_argument("--clients", type=int, default=4)
    options.add_argument("--seconds", type=float, default=15.0)
    options.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, store_url(given.store) as url:
        fill = partial(add_artists, given.artists)
        with running(Path(folder) / "deep", {}, tls=False, url=url, fill=fill) as server:
            return measure(server, given.artists, given.clients, given.seconds)


@contextmanager
def store_url(kind: str) -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database; an empty string for SQLite."""
    if kind == "sqlite":
        yield ""
        return
    server = postgres.Server()
    try:
        yield postgres.database_url(server.folder, "postgres")
    finally:
        server.stop()


def add_artists(count: int, store: Store) -> None:
    """Create the artists with an album and a track each."""

    def add() -> None:
        numbers = NUMBERS.format(count=count) if is_sqlite() else f"generate_series(1, {count}) n (i)"
        for statement in FILL.format(numbers=numbers).split(";"):
            sql.run(statement)

    store.write(add).result()


def measure(server: Server, artists: int, clients: int, seconds: float) -> int:
    """Compare the first page with the last, then the honest client's answers alone and beside the attackers."""
    first, last = fastest(server.port, 1), fastest(server.port, artists // PER_PAGE)
    print(f"{artists:,} artists: first page {first * 1000:.1f} ms, last page {last * 1000:.1f} ms, by itself")
    alone = output_of(server.ask("honest_client.py", seconds / 2))
    line = [sys.executable, __file__, "attack", *map(str, (server.port, artists // PER_PAGE, clients, seconds + 2))]
    attacking = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    time.sleep(1)
    beside = output_of(server.ask("honest_client.py", seconds))
    pages = json.loads(attacking.communicate()[0])
    print(f"  {clients} clients on the last pages: {percentiles(pages)}")
    for name, found in (("alone", alone), ("beside them", beside)):
        print(f"  honest reads {name}: {percentiles(found['times'])}, {len(found['failures'])} failures")
    return int(bool(alone["failures"] or beside["failures"]))


def fastest(port: int, page: int) -> float:
    """Return the fastest of some answers, in seconds, because other work on the machine affects it least."""
    connection, times = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        connection.request("GET", target(page))
        answer = connection.getresponse()
        answer.read()
        times.append(time.perf_counter() - began)
        assert answer.status == HTTPStatus.OK
    connection.close()
    return min(times)


def target(page: int) -> str:
    """Return the path of a page for the attackers."""
    return f"/api/v1/artists?perPage={PER_PAGE}&page={page}"


async def attack(port: int, last: int, clients: int, seconds: float) -> None:
    """Request the last pages over and over; print the times of the answers as JSON."""
    times: list[float] = []
    ends = time.perf_counter() + seconds
    await asyncio.gather(*(walk(port, last - number * DEEPEST // clients, ends, times) for number in range(clients)))
    print(json.dumps(times))


async def walk(port: int, last: int, ends: float, times: list[float]) -> None:
    """Request one page after the other, backwards, until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while (began := time.perf_counter()) < ends:
        writer.write(f"GET {target(last - number % DEEPEST)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 200"), head
        await reader.readexactly(int(head.partition("Content-Length: ")[2].partition("\r\n")[0]))
        times.append(time.perf_counter() - began)
        number += 1
    writer.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        asyncio.run(attack(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])))
    else:
        sys.exit(main())
