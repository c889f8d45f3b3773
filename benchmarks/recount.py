"""Time of figures by the service, DuckDB, ClickHouse (chDB) and Spark (a master, two workers), and their differences.

    python benchmarks/recount.py [--plays 10000000] [--subjects 200] [--only 'duckdb|clickhouse|spark'] [--folder DIR]

Creates plays of three years, with late plays, an import that is undone, plays around midnight UTC and a leap day,
dumps them, and compares all figures of some tracks, albums and artists over six windows. Spark and ClickHouse need
their extras. Ten million plays take ten minutes to create and 3 GB; `--folder` keeps them.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import harness
import recounted_world
from recounted_world import CORRECTED

from musicsvc.cli import recounting
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import ALL, Window
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from musicsvc.store.recounting import compare, dump, engines, results
from musicsvc.store.recounting.dump import Dump
from musicsvc.store.recounting.engines import Engine
from musicsvc.store.schema import schema
from tests.support import spark_cluster

PERIODS = ("7-days", "30-days", "2026-Q3", "2024-02", "2025", ALL)
Found = dict[tuple[Subject, str], Any]


@contextmanager
def spark() -> Iterator[Engine]:
    os.environ["SPARK_LOCAL_IP"] = spark_cluster.HOST  # noqa: TID251 - for the program that pyspark starts
    with TemporaryDirectory() as name, spark_cluster.started(Path(name)) as master, engines.spark(master) as engine:
        yield engine


ENGINES: Mapping[str, Callable[[], AbstractContextManager[Engine]]] = {
    "duckdb": engines.duckdb,
    "clickhouse": engines.clickhouse,
    "spark": spark,
}


def subjects(count: int) -> dict[int, list[int]]:
    """Return ids: a quarter are artists, a quarter albums, the rest tracks; popular and rare ones."""
    some = count // 4
    rest = [number for number in range(1, 3 * count, 3) if number not in CORRECTED]
    tracks = [*dict.fromkeys([*(number - 1 for number in CORRECTED), *rest])]
    return {ARTIST: [*range(1, some + 1)], ALBUM: [*range(1, 4 * some, 4)], TRACK: tracks[: count - 2 * some]}


def database(folder: Path, plays: int) -> str:
    """Return the URL of the database with these plays. Creates it unless it is in the folder."""
    file, made = folder / "musicsvc.db", folder / "complete"
    if not made.exists():
        folder.mkdir(parents=True)
        files.create(file)
        schema.upgrade(f"sqlite:///{file}")
        with opening.connect(f"sqlite:///{file}") as store:
            recounted_world.fill(store, plays)
        made.touch()
    return f"sqlite:///{file}"


def windows(opened: Dump) -> dict[str, Window]:
    found = {name: periods.window(name, opened.dumped_at) for name in PERIODS}
    return found | {ALL: found[ALL]._replace(first=opened.first_day or 0)}


def count(engine: Engine, opened: Dump, ids: Mapping[int, list[int]]) -> Found:
    """Recount all figures by an engine. Print the seconds of each window."""
    found: Found = {}
    for name, window in windows(opened).items():
        began = time.perf_counter()
        for kind, some in ids.items():
            for each in results.run(engine, opened, kind, some, window):
                found[each.subject, name] = recounting.shape(each)
        print(f"  {name}: {time.perf_counter() - began:.1f} s", flush=True)
    return found


def serve(store: Store, opened: Dump, ids: Mapping[int, list[int]]) -> Found:
    """Read the same figures from the service's counts."""
    every = [Subject(kind, each) for kind, some in ids.items() for each in some]
    return {
        (subject, name): store.read(partial(recounting.served_figures, subject, window)).result()
        for name, window in windows(opened).items()
        for subject in every
    }


def differences(served: Found, found: Found) -> list[compare.Difference]:
    which = compare.Comparable(within=True, earlier=True, ever=True, changed=[], deleted=False)
    return [
        each
        for (subject, name), figures in served.items()
        for each in compare.differences(subject, figures, found[subject, name], which)
    ]


def main() -> int:
    """Create the plays, dump, count, compare and print. Return 1 if a figure differs."""
    given = harness.parser(__doc__, plays=10_000_000, subjects=200).parse_args()
    broken = []
    with harness.place(given) as folder:
        (checkout,) = harness.checkouts(given)
        url = database(folder / f"recounted-{given.plays}", given.plays)
        place = folder / f"dump-{given.plays}"
        began = time.perf_counter()
        checkout.run("plays", "dump", "--output", str(place), variables={"MUSICSVC_DATABASE_URL": url})
        print(f"dumped in {time.perf_counter() - began:.1f} s", flush=True)
        opened, ids = dump.load(place), subjects(given.subjects)
        with opening.connect(url) as store:
            began = time.perf_counter()
            served = serve(store, opened, ids)
            print(f"service: {len(served):,} sets of figures, {time.perf_counter() - began:.1f} s", flush=True)
        for name, start in ENGINES.items():
            if not re.search(given.only, name):
                continue
            print(name, flush=True)
            began = time.perf_counter()
            with start() as engine:
                print(f"  started: {time.perf_counter() - began:.1f} s", flush=True)
                results.check_rows(engine, opened)
                wrong = differences(served, count(engine, opened, ids))
            print(f"  {len(wrong):,} differences, {time.perf_counter() - began:.1f} s in all", flush=True)
            broken += wrong[:20]
    for each in broken:
        print(each)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
