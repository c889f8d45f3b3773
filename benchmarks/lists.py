"""Times of the first, the middle and the last page of long lists; honest reads beside clients on the last pages.

    python benchmarks/lists.py [--rows 10000 1000000] [--store sqlite postgres] [--clients 4] [--seconds 15]
        [--against PATH: measures that checkout]

`--rows` albums, tracks of one artist, playlists of one account and comments on one track; a quarter as many artists and
a tenth as many genres. Responses are not cached. With `--clients`, that many clients without a token request the last
pages of the largest list of artists, one after the other without a pause, beside an honest client. Exit 1 if a request
of the honest client fails.
"""

import asyncio
import re
import sys
import time
from contextlib import ExitStack
from functools import partial

import harness
from clients import PATIENCE, Stage, compare, percentiles, raw, receive, send
from harness import Server

PER_PAGE = 20
REPEATS = 3  # of a request in a round, of which the fastest counts
DEEPEST = 50  # number of last pages that the clients request
LISTS = {
    "albums": "albums",
    "artists": "artists",
    "tracks of an artist": "artists/{0}/tracks",
    "genres": "genres",
    "playlists": "playlists",
    "comments": "tracks/{0}/comments",
}


def main() -> int:
    """Measure and print a table. Return the exit code."""
    parser = harness.parser(__doc__, rounds=15, clients=0, seconds=15.0)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--store", choices=["sqlite", "postgres"], nargs="+", default=["sqlite"])
    given = parser.parse_args()
    broken = []
    with harness.place(given) as folder:
        for kind in given.store:
            for rows in given.rows:
                with ExitStack() as opened:
                    url = opened.enter_context(harness.own_postgres()) if kind == "postgres" else ""
                    checkout = harness.checkouts(given)[-1]
                    base = harness.database(checkout, folder / kind, "lists", rows, url=url)
                    server = opened.enter_context(harness.running(checkout, base, {"server.answer_cache": 0}))
                    pages = ("first", "middle", "last")
                    print(f"{kind}, {rows:,} rows" + (f", {given.against}" if given.against else ""))
                    table = harness.Table("list", pages, [("last / first", "last", "first")], "ms", 2)
                    for name, path in LISTS.items():
                        if re.search(given.only, name):
                            table.row(name, measure(server, path.format(base.filled), given.rounds))
                    if given.clients and rows == max(given.rows):
                        crowd = walk, server.port, rows // 4 // PER_PAGE, given.clients
                        times, failed = compare(server, given.seconds, PATIENCE, *crowd, memory=False)
                        print(f"  {given.clients} clients on the last pages of artists: {percentiles(times)}")
                        broken += failed
    return harness.say(broken)


def measure(server: Server, path: str, rounds: int) -> harness.Values:
    """Return the milliseconds of three pages."""
    first = server.ask("GET", f"/api/v1/{path}?perPage=1")
    total = next(each["total"] for each in first.values() if isinstance(each, dict))
    pages = {"first": 1, "middle": max(1, total // PER_PAGE // 2), "last": -(-total // PER_PAGE)}

    def ask(page: int, _: int) -> float:
        request = raw(f"/api/v1/{path}?perPage={PER_PAGE}&page={page}", server.port, token=server.token)
        return 1e3 * min(asyncio.run(send(server.port, [request] * REPEATS, 1)))

    return harness.in_turn(rounds, {place: partial(ask, page) for place, page in pages.items()})


async def walk(stage: Stage, port: int, last: int, clients: int) -> list[float]:
    """Request the last pages over and over, backwards. Return the seconds of the responses."""
    times: list[float] = []

    async def one(start: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(sys.maxsize):
            began = time.perf_counter()
            page = max(1, last - (start + number) % DEEPEST)
            writer.write(raw(f"/api/v1/artists?perPage={PER_PAGE}&page={page}", port))
            await receive(reader)
            times.append(time.perf_counter() - began)

    stage.ready(f"{clients} clients on the last pages")
    await stage.run(*(one(number * DEEPEST // clients) for number in range(clients)))
    return times


if __name__ == "__main__":
    sys.exit(main())
