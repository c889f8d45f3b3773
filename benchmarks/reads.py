"""CPU time of the server per read, beside bare aiohttp that returns the same bytes.

    python benchmarks/reads.py [--albums 4000] [--catalog FILE [--columns track_name=track …]] [--workers 1 2]
        [--without-limits] [--postgres] [--requests 1000] [--only hot]

Servers run at once and get the same requests in turn. *hot*: the same request again and again; *cold*: random pages or
rows, each at most a few times. `--catalog`: a file for `musicsvc import catalog`, whose catalog is read in place of a
synthetic one. `--albums 10000 400000` compares two sizes. `--without-limits` and `--postgres` add servers. Each worker
gets as many requests, over as many connections.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import harness
from clients import CONNECTIONS, cost_each, raw
from harness import Checkout, Database, Server

API = "/api/v1"
ROWS = {
    "hot": (
        "/healthz",
        "users/me",
        "genres",
        "artists",
        "tracks/{track}",
        "albums/{album}",
        "albums",
        "albums?perPage=50",
    ),
    "cold": ("genres?page={page}", "tracks/{track}", "albums/{album}", "artists?page={page}", "albums?page={page}"),
}
PER_PAGE = 20
KNOWN = 2_000  # ids of tracks and albums to choose from


def main() -> None:
    """Run the servers, measure and print."""
    given = arguments()
    with harness.place(given) as folder, ExitStack() as opened:
        servers = {name: (server, Paths(server)) for name, server in running(given, folder, opened)}
        first = next(iter(servers))
        rows = [
            (kind, path) for kind, paths in ROWS.items() for path in paths if re.search(given.only, f"{kind} {path}")
        ]
        server, paths = servers[first]
        bodies = [server.body("GET", paths.same(path)) for _, path in rows]
        bare = opened.enter_context(harness.bare(bodies))
        ratios = [(f"{name}, of bare", "bare", name) for name in servers]
        ratios += [(f"{name} / {first}", name, first) for name in servers if name != first and not given.against]
        table = harness.Table("request", [*servers, "bare"], ratios)
        for number, (kind, path) in enumerate(rows):
            work: dict[str, Callable[[int], float]] = {
                name: partial(measure, *pair, kind, path, given.requests) for name, pair in servers.items()
            }
            plain = [raw(f"/{number}", bare.port)] * given.requests
            work["bare"] = lambda _, plain=plain: cost_each(bare, plain)  # type: ignore[misc]
            table.row(f"{kind} {path}", harness.in_turn(given.rounds, work))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = harness.parser(__doc__, requests=1000)
    parser.add_argument("--albums", type=int, nargs="+", default=[4000])
    parser.add_argument("--catalog", type=Path, help="a file with a catalog")
    parser.add_argument("--columns", nargs="*", default=[], help="its columns, as for `import catalog --map`")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--without-limits", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args()


def running(given: argparse.Namespace, folder: Path, opened: ExitStack) -> Iterator[tuple[str, Server]]:
    """Start all servers. Yield their names and them."""
    limits = {"": harness.ON} | ({"without limits": harness.OFF} if given.without_limits else {})
    stores = ["", "postgres"] if given.postgres else [""]
    for checkout in harness.checkouts(given):
        for store in stores:
            for albums in given.albums:
                url = opened.enter_context(harness.own_postgres()) if store else ""
                base = data(checkout, folder, given, albums, url)
                size = f"{albums:,} albums" if len(given.albums) > 1 else ""
                for limit, settings in limits.items():
                    for workers in given.workers:
                        some = f"{workers} workers" if workers > 1 else ""
                        server = harness.running(checkout, base, {**settings, "server.workers": workers})
                        yield checkout.label(store, size, limit, some), opened.enter_context(server)


def data(checkout: Checkout, folder: Path, given: argparse.Namespace, albums: int, url: str) -> Database:
    """Create the catalog."""
    if given.catalog is None:
        return harness.database(checkout, folder, "catalog", albums, url=url)
    base = harness.database(checkout, folder, "small", given.catalog.name, url=url)
    harness.import_catalog(checkout, base.url, given.catalog, given.columns)
    return base


class Paths:
    """Paths of the catalog of a server."""

    def __init__(self, server: Server) -> None:
        self._chance = random.Random(1)
        self._pages = {"genres": 2}
        self._ids = {}
        for name in ("tracks", "albums", "artists"):
            total = listed(server, name, "perPage=1")["total"]
            self._pages[name] = max(1, total // PER_PAGE)
            pages = range(1, max(1, total // 100) + 1)
            chosen = self._chance.sample(pages, min(len(pages), KNOWN // 100)) if name != "artists" else []
            found = (listed(server, name, f"perPage=100&page={page}") for page in chosen)
            self._ids[name] = [row["id"] for each in found for row in each["data"]]

    def same(self, path: str) -> str:
        """Return the same path of this kind every time."""
        root = "" if path.startswith("/") else f"{API}/"
        return root + path.format(page=1, track=self._ids["tracks"][0], album=self._ids["albums"][0])

    def some(self, path: str, count: int) -> Iterator[str]:
        """Yield paths of this kind, with random rows and pages."""
        for _ in range(count):
            page = self._chance.randint(1, self._pages.get(path.partition("?")[0], 1))
            track, album = (self._chance.choice(self._ids[name]) for name in ("tracks", "albums"))
            yield f"{API}/{path.format(page=page, track=track, album=album)}"


def listed(server: Server, name: str, query: str) -> dict[str, Any]:
    """Return a page of a list."""
    found: dict[str, Any] = server.ask("GET", f"{API}/{name}?{query}")
    return found.get(name) or found["pagination"]  # type: ignore[no-any-return]


def measure(server: Server, paths: Paths, kind: str, path: str, requests: int, turn: int) -> float:
    """Send the requests of a round. Return the CPU time of the server for each, in µs."""
    workers = max(1, len(harness.processes(server.process.pid)) - 1)
    if kind == "cold":  # spellings that no cache has
        mark = "&" if "?" in path else "?"
        found = enumerate(paths.some(path, requests * workers))
        wanted = [f"{each}{mark}uncached={turn}.{at}" for at, each in found]
    else:
        wanted = [paths.same(path)] * requests * workers
    return cost_each(server, [raw(each, server.port, token=server.token) for each in wanted], CONNECTIONS * workers)


if __name__ == "__main__":
    main()
