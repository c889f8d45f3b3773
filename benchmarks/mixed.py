"""CPU time of the server per request of a mixed load, beside bare aiohttp that answers with the same sizes; memory.

    python benchmarks/mixed.py [--albums 4000] [--rounds 5] [--requests 4000] [--warm-up 20000] [--workers 1]
        [--idle 0] [--postgres]

Fifty callers, each with a token and a connection, ask for albums, tracks, artists, playlists, comments and figures with
a Zipf distribution, and write with 2 % of their requests. Four of five behave like a browser: they accept gzip and
revalidate with the tag of the response before. In each round the yardstick gets the same requests and answers each with
the status and the size that the server's response had. After each round an account gets two covers and a PDF. Memory
is the anonymous memory of each process of the server, also once it has been idle for `--idle` seconds.
`--postgres` runs it on PostgreSQL, and counts the connections of the server at the end.
"""

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import harness
from clients import Connection, converse, cost, percentile, raw
from harness import Server
from worlds import NOW

SIMPLE = 5  # every fifth caller is no browser
WRITES = 0.02
PER_PAGE = 20
API, INSIGHTS = "/api/v1", "/api/v1/producer-intelligence/insights"
TAG = re.compile(rb"\r\netag: ([^\r]+)", re.IGNORECASE)


class Wanted(NamedTuple):
    """A request of the mix; `body` is JSON, or empty for a read."""

    method: str
    path: str
    body: bytes = b""


class Mix:
    """Random requests of one account; the same seed gives the same requests."""

    def __init__(self, world: dict[str, Any], account: dict[str, Any], seed: str) -> None:
        self._chance = random.Random(seed)
        self._world = world
        self._account = account

    def requests(self, count: int) -> Iterator[Wanted]:
        """Yield reads, and 2 % writes."""
        weights = [share for share, _ in READS]
        for _ in range(count):
            if self._chance.random() < WRITES:
                yield self._write()
            else:
                [(_, path)] = self._chance.choices(READS, weights)
                yield Wanted("GET", path(self))

    def any(self, name: str) -> int:
        """Return an id of this kind with a Zipf distribution."""
        return self._drawn(self._world[name])

    def own(self, name: str) -> int:
        """Return an id of what the account has or manages."""
        return self._drawn(self._account[name])

    def page(self, name: str) -> int:
        """Return the number of a page of a list."""
        return self._drawn(range(1, max(2, len(self._world[name]) // PER_PAGE)))

    def _drawn(self, ids: Sequence[int]) -> int:
        return self._chance.choices(ids, cum_weights=zipf(len(ids)))[0]

    def _write(self) -> Wanted:
        track, playlist = self.any("tracks"), self._chance.choice(self._account["playlists"])
        play = {"track_id": track, "played_at": NOW // 1_000_000, "listener": f"l{self._chance.randint(1, 5_000)}"}
        choices: list[tuple[int, str, object]] = [
            (30, f"tracks/{track}/like", None),
            (25, "plays", {"plays": [play]}),
            (20, f"playlists/{playlist}/tracks/add", {"ids": [track]}),
            (15, f"tracks/{track}/comments", {"content": "Another comment.", "position": self._chance.randint(0, 100)}),
            (10, "playlists", {"name": f"New {self._chance.random():.6f}"}),
        ]
        [(_, path, body)] = self._chance.choices(choices, [share for share, *_ in choices])
        return Wanted("POST", f"{API}/{path}", b"" if body is None else json.dumps(body).encode())


@cache
def zipf(count: int) -> list[float]:
    """Return cumulated weights by rank."""
    return list(accumulate(1 / rank for rank in range(1, count + 1)))


READS: tuple[tuple[int, Callable[[Mix], str]], ...] = (  # shares in percent
    (14, lambda mix: f"{API}/albums?page={mix.page('albums')}"),
    (16, lambda mix: f"{API}/albums/{mix.any('albums')}"),
    (18, lambda mix: f"{API}/tracks/{mix.any('tracks')}"),
    (6, lambda mix: f"{API}/artists?page={mix.page('artists')}"),
    (8, lambda mix: f"{API}/artists/{mix.any('artists')}"),
    (5, lambda mix: f"{API}/artists/{mix.any('artists')}/albums"),
    (5, lambda mix: f"{API}/artists/{mix.any('artists')}/tracks"),
    (3, lambda _: f"{API}/genres"),
    (3, lambda _: f"{API}/users/me"),
    (4, lambda _: f"{API}/playlists"),
    (8, lambda mix: f"{API}/playlists/{mix.own('playlists')}/tracks"),
    (6, lambda mix: f"{API}/tracks/{mix.any('tracks')}/comments"),
    (2, lambda mix: f"{INSIGHTS}/artists/{mix.own('artists')}"),
    (2, lambda mix: f"{INSIGHTS}/tracks/{mix.own('tracks')}"),
)


class Exchange(NamedTuple):
    """A request as it was sent, and the status and the size of the body that answered it."""

    wanted: Wanted
    headers: Sequence[str]
    status: int
    size: int


class Browser:
    """A caller that remembers the entity tags of what it read; a `simple` one neither revalidates nor takes gzip."""

    def __init__(self, token: str, *, simple: bool) -> None:
        self._token = token
        self._simple = simple
        self._tags: dict[str, str] = {}
        self.exchanges: list[Exchange] = []

    async def ask(self, port: int, wanted: Iterator[Wanted], times: list[float]) -> None:
        """Send the requests one after the other, and record them with their responses in `exchanges`."""
        self.exchanges = []
        await converse(port, Connection(self._sent(port, wanted), times, self._took))

    def _sent(self, port: int, wanted: Iterator[Wanted]) -> Iterator[bytes]:
        for each in wanted:
            tag = self._tags.get(each.path) if each.method == "GET" else None
            headers = [] if self._simple else ["Accept-Encoding: gzip, deflate, br"]
            headers += [f"If-None-Match: {tag}"] if tag and not self._simple else []
            self._last = each, headers
            yield encoded(each, headers, self._token, port)

    def _took(self, head: bytes, size: int) -> None:
        """Record a response."""
        wanted, headers = self._last
        self.exchanges.append(Exchange(wanted, headers, int(head[9:12]), size))
        if tag := TAG.search(head):
            self._tags[wanted.path] = tag[1].decode()

    def replay(self, port: int) -> Iterator[bytes]:
        """Yield the recorded requests for the yardstick, which answers with the same statuses and sizes."""
        for each in self.exchanges:
            headers = [*each.headers, f"X-Answer: {each.status} {each.size}"]
            yield encoded(each.wanted._replace(path="/asked"), headers, self._token, port)


def encoded(wanted: Wanted, headers: Sequence[str], token: str, port: int) -> bytes:
    """Return the bytes of a request."""
    more = headers if wanted.body or wanted.method == "GET" else [*headers, "Content-Length: 0"]
    return raw(wanted.path, port, token=token, method=wanted.method, body=wanted.body, more=more)


class Load:
    """The callers of one server, and what they were told in the measured rounds."""

    def __init__(self, server: Server, bare: Server, requests: int) -> None:
        self._server = server
        self._bare = bare
        self._accounts = server.filled["accounts"]
        self._each = max(1, requests // len(self._accounts))
        self._browsers = [Browser(each["token"], simple=at % SIMPLE == 0) for at, each in enumerate(self._accounts)]
        self.times: list[float] = []
        self.exchanges: list[Exchange] = []

    def round(self, number: int) -> float:
        """Send the requests of a round to the server. Return its CPU time for each, in µs."""
        seeds = (f"{number}.{at}" for at in range(len(self._accounts)))
        mixes = (Mix(self._server.filled, *pair) for pair in zip(self._accounts, seeds, strict=True))
        wanted = [iter(list(mix.requests(self._each))) for mix in mixes]

        async def ask() -> None:
            pairs = zip(self._browsers, wanted, strict=True)
            await asyncio.gather(*(browser.ask(self._server.port, some, self.times) for browser, some in pairs))

        spent = cost(self._server, ask)
        self._draw(number)
        self.exchanges += [each for browser in self._browsers for each in browser.exchanges]
        return spent / (self._each * len(self._browsers)) * 1e6

    def _draw(self, number: int) -> None:
        """Get two covers and a PDF, whose CPU time does not count."""
        token = self._accounts[number % len(self._accounts)]["token"]
        for at in range(2):
            cover = {"template_id": (2 * number + at) % 8 + 1, "title": f"Cover {number}.{at}", "artist": "Anna Bon"}
            shown = self._server.ask("POST", f"{API}/cover-art/preview", cover, token)
            self._server.body("GET", re.sub(r"^https?://[^/]+", "", shown["preview_url"]))
        period = {"period": ("7-days", "30-days", "1-year")[number % 3]}
        self._server.body("POST", "/api/v1/producer-intelligence/insights/export/pdf", period, token)

    def replay(self, _: int) -> float:
        """Send the same requests to the yardstick. Return its CPU time for each, in µs."""

        async def ask() -> None:
            port = self._bare.port
            await asyncio.gather(*(converse(port, Connection(each.replay(port), [])) for each in self._browsers))

        return cost(self._bare, ask) / (self._each * len(self._browsers)) * 1e6

    def forget(self) -> None:
        """Forget the rounds so far; the callers keep their tags."""
        self.times.clear()
        self.exchanges.clear()


def hits(server: Server) -> tuple[float, float]:
    """Return how many responses the cache had so far, and how many not."""
    text = server.body("GET", "/metrics").decode()
    names = ("musicsvc_answer_cache_hits_total", "musicsvc_answer_cache_misses_total")
    first, second = (float(re.findall(rf"^{name} ([\d.e+]+)$", text, re.MULTILINE)[0]) for name in names)
    return first, second


def connections(url: str) -> int:
    """Return the number of connections that others have to a database."""
    import psycopg  # noqa: PLC0415 - not installed for SQLite

    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return int(connection.execute(query).fetchall()[0][0])


def main() -> None:
    """Run the servers, measure and print."""
    parser = harness.parser(__doc__, albums=4000, requests=4000, warm_up=20_000, workers=1, idle=0)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with harness.place(given) as folder, ExitStack() as opened:
        bare = opened.enter_context(harness.bare())
        servers = {}
        for checkout in harness.checkouts(given):
            url = opened.enter_context(harness.own_postgres()) if given.postgres else ""
            base = harness.database(checkout, folder, "mixed", given.albums, url=url)
            settings = {**harness.ON, "server.workers": given.workers}
            servers[checkout.label()] = opened.enter_context(harness.running(checkout, base, settings))
        measure(servers, bare, given)
        if given.postgres:
            print(f"connections to PostgreSQL at the end: {connections(url)}")


def sizes(servers: dict[str, Server]) -> list[str]:
    """Return the anonymous memory of each server: in all, and of each process."""
    found = {name: [size / harness.MEBIBYTE for size in server.memories()] for name, server in servers.items()}
    return [f"{name} {sum(each):.0f} MiB ({' + '.join(f'{one:.0f}' for one in each)})" for name, each in found.items()]


def measure(servers: dict[str, Server], bare: Server, given: argparse.Namespace) -> None:
    """Warm up, measure, and print the tables."""
    loads = {name: Load(server, bare, given.requests) for name, server in servers.items()}
    memory = {"at the start": sizes(servers)}
    for number in range(given.warm_up // given.requests):
        for load in loads.values():
            load.round(-number)
    for load in loads.values():
        load.forget()
    before = {name: hits(server) for name, server in servers.items()}
    turns: dict[str, Callable[[int], float]] = {}
    for name, load in loads.items():
        turns |= {name: load.round, f"bare, sizes of {name}": load.replay}
    ratios = [(f"{name}, of bare", f"bare, sizes of {name}", name) for name in servers]
    table = harness.Table("load", list(turns), ratios)
    table.row("mixed", harness.in_turn(given.rounds, turns))
    for name, load in loads.items():
        now = [after - first for after, first in zip(hits(servers[name]), before[name], strict=True)]
        total = len(load.exchanges)
        counted = Counter(each.status for each in load.exchanges)
        shares = ", ".join(f"{status}: {count / total:.0%}" for status, count in sorted(counted.items()))
        late = " / ".join(f"{percentile(load.times, each) * 1000:.1f}" for each in (50, 99))
        size = sum(each.size for each in load.exchanges) / total / 1000
        print(f"{name}: {shares}; {size:.1f} kB of body on average; p50 / p99 {late} ms;", end=" ")
        print(f"{now[0] / max(1.0, sum(now)):.0%} of the reads from the cache")
    memory["at the end of the load"] = sizes(servers)
    time.sleep(given.idle)
    memory[f"idle for {given.idle} s"] = sizes(servers)
    for title, found in memory.items():
        print(f"memory {title}: {'; '.join(found)}")


if __name__ == "__main__":
    main()
