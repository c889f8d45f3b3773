"""Speed of recording plays with their counts: CPU time in the store, and of the server for `POST /plays` of 1,000.

    python benchmarks/plays.py [--plays 1000000] [--rounds 5] [--batches 20]
    python benchmarks/plays.py --disk [--postgres] [--plays 1000000] [--albums 20000]

Records plays of ten months until `--plays` exist, in order of time; then measures batches of 1,000 and 10,000 and
requests in turn over two months more. Ten million take some minutes to create: `--folder` keeps them. `--disk` measures
the disk instead that a catalog (five tracks an album) and the plays take.
"""

import json
import sys
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

import harness
from clients import cost, raw, send
from harness import Checkout, Inside, Server, answer_inside
from worlds import Stream, record

from musicsvc.clock import DAY, isoformat
from musicsvc.store.engine.store import Store

GAP = 60  # days, for the measured plays
BATCH = 1_000


def measured(store: Store, size: int, count: int, first: int, parts: int, turn: int) -> float:
    """Record `count` batches of the next of equal parts of the gap. Return the plays per CPU second."""
    span, part = GAP * DAY // parts, first + turn
    stream = Stream(size * count, GAP * DAY - part * span, GAP * DAY - (part + 1) * span, seed=part)
    spent = 0.0
    for _ in range(count):
        batch = stream.batch(size)
        began = time.process_time()
        taken = store.write(partial(record, batch)).result()
        spent += time.process_time() - began
        assert taken > size * 0.9
    return size * count / spent


def bodies(count: int, seed: int, size: int = BATCH, known: int = 0) -> list[bytes]:
    """Return bodies of requests with `size` plays each of the last hours, `known` percent by known listeners."""
    stream = Stream(size * count, DAY, 0, seed=seed)
    found = []
    for _ in range(count):
        plays = [
            {
                "track_id": row.track,
                "played_at": isoformat(row.played_at),
                "listener": f"benchmark {row.listener}" if at % 100 < known else f"listener {seed} {row.listener}",
                "duration_ms": row.duration_ms,
            }
            for at, row in enumerate(stream.batch(size))
        ]
        found.append(json.dumps({"plays": plays}).encode())
    return found


def post(server: Server, count: int, part: int) -> float:
    """Send such requests. Return the plays per CPU second of the server."""
    path = "/api/v1/plays"
    some = [raw(path, server.port, token=server.token, method="POST", body=body) for body in bodies(count, part)]
    return BATCH * count / cost(server, lambda: send(server.port, some, 1))


def disk(checkout: Checkout, folder: Path, plays: int, albums: int, *, postgres: bool) -> None:
    """Print what a catalog and plays take on the disk of a database."""

    def megabytes(world: str, *arguments: object) -> float:
        with harness.own_postgres() if postgres else nullcontext("") as url:
            return harness.disk_bytes(harness.database(checkout, folder, world, *arguments, url=url)) / 1e6

    catalog = megabytes("catalog", albums) - megabytes("small")
    recorded = megabytes("figures", plays) - megabytes("figures", 0)
    name = checkout.label("PostgreSQL" if postgres else "SQLite")
    print(f"{name}: {5 * albums:,} tracks take {catalog:,.0f} MB, {plays:,} plays take {recorded:,.0f} MB")


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, plays=1_000_000, batches=20, albums=20_000)
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    if given.disk:
        with harness.place(given) as folder:
            for checkout in harness.checkouts(given):
                for postgres in [False, *[True] * given.postgres]:
                    disk(checkout, folder, given.plays, given.albums, postgres=postgres)
        return
    with harness.place(given) as folder, ExitStack() as opened:
        stores, servers = {}, {}
        for checkout in harness.checkouts(given):
            base = harness.database(checkout, folder, "figures", given.plays, GAP)
            stores[checkout.label()] = opened.enter_context(Inside(checkout, "plays.py", base.url))
            servers[checkout.label()] = opened.enter_context(harness.running(checkout, base, harness.OFF))
        table = harness.Table(f"recorded, beside {given.plays:,}", list(stores), unit="plays per CPU second")
        parts = 2 * (given.rounds + 1)
        for at, size in enumerate((BATCH, 10 * BATCH)):
            count = max(1, given.batches * BATCH // size)
            wanted = size, count, at * (given.rounds + 1), parts
            work = {name: partial(inside.ask, "measured", *wanted) for name, inside in stores.items()}
            table.row(f"batches of {size:,}", harness.in_turn(given.rounds, work))
        posts = {name: partial(post, server, given.batches) for name, server in servers.items()}
        table.row(f"POST /plays of {BATCH:,}", harness.in_turn(given.rounds, posts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"measured": measured})
    else:
        main()
