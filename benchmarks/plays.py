"""Speed of recording plays with their counts: CPU time in the store, and of the server for `POST /plays` of 1,000.

    python benchmarks/plays.py [--plays 1000000] [--rounds 5] [--batches 20]
    python benchmarks/plays.py --imported 100000 [--postgres] [--file FILE --columns song=track time=played_at …]
    python benchmarks/plays.py --disk [--postgres] [--plays 1000000] [--albums 20000]

Records plays of ten months until `--plays` exist, in order of time; then measures batches of 1,000 and 10,000 and
requests in turn over two months more. Ten million take some minutes to create: `--folder` keeps them. `--imported`
measures `musicsvc import plays` of that many rows instead, or of a file, beside a catalog with all its tracks: what it
takes more than for the first row alone. `--disk` measures the disk that a catalog (five
tracks an album) and the plays take.
"""

import argparse
import csv
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import accumulate
from pathlib import Path

import harness
from clients import cost, raw, send
from harness import Checkout, Database, Inside, Server, answer_inside
from worlds import FIGURE_TRACKS, TRACKS_AN_ARTIST, Stream, record

from musicsvc.clock import DAY, isoformat
from musicsvc.store.engine.store import Store

GAP = 60  # days, for the measured plays
BATCH = 1_000


def measured(store: Store, size: int, count: int, tracks: int, first: int, parts: int, turn: int) -> float:
    """Record `count` batches of the next of equal parts of the gap. Return the plays per CPU second."""
    span, part = GAP * DAY // parts, first + turn
    stream = Stream(size * count, GAP * DAY - part * span, GAP * DAY - (part + 1) * span, seed=part, tracks=tracks)
    spent = 0.0
    for _ in range(count):
        batch = stream.batch(size)
        began = time.process_time()
        taken = store.write(partial(record, batch)).result()
        spent += time.process_time() - began
        assert taken > size * 0.9
    return size * count / spent


def bodies(count: int, seed: int, size: int = BATCH, known: int = 0, tracks: int = FIGURE_TRACKS) -> list[bytes]:
    """Return bodies of requests with `size` plays each of the last hours, `known` percent by known listeners."""
    stream = Stream(size * count, DAY, 0, seed=seed, tracks=tracks)
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


def post(server: Server, count: int, tracks: int, part: int) -> float:
    """Send such requests. Return the plays per CPU second of the server."""
    path, sent = "/api/v1/plays", bodies(count, part, tracks=tracks)
    some = [raw(path, server.port, token=server.token, method="POST", body=body) for body in sent]
    return BATCH * count / cost(server, lambda: send(server.port, some, 1))


def history(file: Path, rows: int) -> None:
    """Write plays of 5,000 tracks (Zipf) by 200 listeners in order of time, about one in three minutes."""
    chance = random.Random(1)
    weights = [*accumulate(1 / rank for rank in range(1, 5_001))]
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.writer(opened)
        out.writerow(("artist", "track", "album", "played_at", "listener", "listened_ms"))
        for row, track in enumerate(chance.choices(range(5_000), cum_weights=weights, k=rows)):
            names = f"Artist {track % 700}", f"Track {track}", f"Album {track % 1_500}"
            at = isoformat(1_750_000_000_000_000 + row * 180_000_000)[:19] + "Z"
            out.writerow((*names, at, f"Listener {chance.randrange(200)}", chance.randrange(30_000, 240_000)))


def imported(given: argparse.Namespace, folder: Path, checkouts: Sequence[Checkout], *, postgres: bool) -> None:
    """Print how many rows of a history are imported in a CPU second, into copies of a database with their tracks."""
    file, first = given.file.resolve() if given.file else folder / "history.csv", folder / "first.csv"
    if not given.file:
        history(file, given.imported)
    lines = file.read_text("utf-8").splitlines(keepends=True)
    first.write_text("".join(lines[:2]), "utf-8")
    rows, others = len(lines) - 1, defaultdict[str, harness.Values](lambda: defaultdict(list))
    of_plays = ("played_at", "listener", "listened_ms")
    of_tracks = [f"{each.partition('=')[0]}=" if each.endswith(of_plays) else each for each in given.columns]

    def measure(checkout: Checkout, base: Database, turn: int) -> float:
        parts = ("begun", first), ("whole", file), ("whole", file)
        urls = {name: harness.copied(base, name) for name, _ in parts}
        start, whole, again = (
            harness.import_catalog(checkout, urls[name], each, given.columns, "plays") for name, each in parts
        )
        if turn:
            others["again: only read and matched"][checkout.label()].append(rows / (again - start))
            others["with the start of the program"][checkout.label()].append(rows / whole)
        return rows / (whole - start)

    with ExitStack() as opened:
        work: dict[str, Callable[[int], float]] = {}
        for checkout in checkouts:
            url = opened.enter_context(harness.own_postgres()) if postgres else ""
            base = harness.database(checkout, folder, "small", time.time_ns(), url=url)
            harness.import_catalog(checkout, base.url, file, of_tracks)
            work[checkout.label()] = partial(measure, checkout, base)
        store = "PostgreSQL" if postgres else "SQLite"
        table = harness.Table(f"{rows:,} rows imported, {store}", [*work], unit="rows per CPU second")
        table.row("new", harness.in_turn(given.rounds, work))
        for name, values in others.items():
            table.row(name, values)


def disk(checkout: Checkout, folder: Path, plays: int, albums: int, *, postgres: bool) -> None:
    """Print what a catalog and plays take on the disk of a database."""

    def megabytes(world: str, *arguments: object) -> float:
        with harness.own_postgres() if postgres else nullcontext("") as url:
            return harness.disk_bytes(harness.database(checkout, folder, world, *arguments, url=url)) / 1e6

    catalog = megabytes("catalog", albums) - megabytes("small")
    recorded = megabytes("figures", plays) - megabytes("figures", plays, 0, TRACKS_AN_ARTIST, "unplayed")
    name = checkout.label("PostgreSQL" if postgres else "SQLite")
    print(f"{name}: {5 * albums:,} tracks take {catalog:,.0f} MB, {plays:,} plays take {recorded:,.0f} MB")


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, plays=1_000_000, batches=20, albums=20_000, imported=0)
    parser.add_argument("--file", type=Path, help="a history of as many rows as it has")
    parser.add_argument("--columns", nargs="*", default=[], help="its columns, as for `import plays --map`")
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    if given.disk:
        with harness.place(given) as folder:
            for checkout in harness.checkouts(given):
                for postgres in [False, *[True] * given.postgres]:
                    disk(checkout, folder, given.plays, given.albums, postgres=postgres)
        return
    if given.imported or given.file:
        with harness.place(given) as folder:
            for postgres in [False, *[True] * given.postgres]:
                imported(given, folder, harness.checkouts(given), postgres=postgres)
        return
    with harness.place(given) as folder, ExitStack() as opened:
        stores, servers = {}, {}
        for checkout in harness.checkouts(given):
            base = harness.database(checkout, folder, "figures", given.plays, GAP)
            stores[checkout.label()] = opened.enter_context(Inside(checkout, "plays.py", base.url))
            servers[checkout.label()] = opened.enter_context(harness.running(checkout, base, harness.OFF))
        table = harness.Table(f"recorded, beside {given.plays:,}", list(stores), unit="plays per CPU second")
        each, tracks = given.rounds + 2, min(given.plays, FIGURE_TRACKS)
        for at, size in enumerate((BATCH, 10 * BATCH)):
            count = max(1, given.batches * BATCH // size)
            wanted = size, count, tracks, at * each, 2 * each
            work = {name: partial(inside.ask, "measured", *wanted) for name, inside in stores.items()}
            table.row(f"batches of {size:,}", harness.in_turn(given.rounds, work))
        posts = {name: partial(post, server, given.batches, tracks) for name, server in servers.items()}
        table.row(f"POST /plays of {BATCH:,}", harness.in_turn(given.rounds, posts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"measured": measured})
    else:
        main()
