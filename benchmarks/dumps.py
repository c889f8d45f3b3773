"""Time, memory and bytes of `musicsvc plays dump`: into a new folder, again without changes, and after late plays.

    python benchmarks/dumps.py [--plays 10000000] [--late 1000] [--postgres] [--folder FOLDER]

The plays are those of a year, of 100,000 tracks. The late plays are of a day of it. CPU time is that of the process,
without PostgreSQL's. Ten million plays take some minutes to create and 2 GB; `--folder` keeps them.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import harness
from harness import Checkout, Inside, answer_inside
from worlds import NOW

from musicsvc.clock import DAY
from musicsvc.store.engine.store import Store
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import SLOT

MEGABYTE = 1e6


def late(store: Store, plays: int) -> int:
    """Record plays of one day, 100 days ago."""
    first = NOW - 100 * DAY
    rows = [PlayRow((first + n) // SLOT, 1 + n, 1 + n, b"", first + n, None, 0) for n in range(plays)]
    return store.write(partial(ingest.record, rows)).result()


def dump(checkout: Checkout, url: str, target: Path) -> dict[str, Any]:
    """Run the command. Return its result with the CPU seconds, and the megabytes that it took at most."""
    began = time.perf_counter()
    line = ["-m", "musicsvc", "-q", "plays", "dump", "--output", str(target), "--json"]
    process = checkout.start(*line, variables={"MUSICSVC_DATABASE_URL": url}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    found = json.loads(process.stdout.read())
    used = harness.usage(process)
    seconds = time.perf_counter() - began
    return {**found, "wall": seconds, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024 / MEGABYTE}


def main() -> None:
    """Create the database, measure and print."""
    parser = harness.parser(__doc__, plays=10_000_000, late=1_000)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL that this starts")
    given = parser.parse_args()
    (checkout, *_) = harness.checkouts(given)
    with ExitStack() as opened:
        folder = opened.enter_context(harness.place(given))
        url = opened.enter_context(harness.own_postgres()) if given.postgres else ""
        base = harness.database(checkout, folder, "figures", given.plays, url=url)
        target = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=folder))) / "dump"
        print("| run | s | CPU s | MB of memory | files written | MB of files | bytes a play |")
        print("|---|---|---|---|---|---|---|")
        for run in ("into a new folder", "again", f"after {given.late:,} late plays of a day"):
            if run.startswith("after"):
                with Inside(checkout, "dumps.py", base.url) as inside:
                    inside.ask("late", given.late)
            done = dump(checkout, base.url, target)
            print(
                f"| {run} | {done['wall']:.1f} | {done['cpu']:.1f} | {done['memory']:.0f} | {len(done['written'])} of"
                f" {done['files']} | {done['bytes'] / MEGABYTE:.1f} | {done['bytes'] / done['plays']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"late": late})
    else:
        main()
