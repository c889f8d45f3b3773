"""Run the benchmarks of the summary in docs/development/performance.md, one after the other.

    python benchmarks [--only NAME] [--tiny] [--list] [--against PATH]

Each prints the table that its section of the page shows. `--tiny` runs them in seconds over little data: it shows that
they work, and measures nothing. `--against` compares with another checkout.
"""

import argparse
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Benchmark(NamedTuple):
    """A program of this folder, its options, and those of a run over little data."""

    name: str
    program: str
    options: str
    tiny: str


FEW = "--albums 240 --rounds 0"
SHORT = "--seconds 2.5 --late 5 --transport plain"
BENCHMARKS = (
    Benchmark("hot", "reads.py", "--only 'hot|healthz' --without-limits", ""),
    Benchmark("cold", "reads.py", "--only cold --albums 100000", f"{FEW} --requests 16 --only 'cold.*tracks'"),
    Benchmark("sizes", "reads.py", "--only cold --albums 10000 400000", ""),
    Benchmark("postgres", "reads.py", "--postgres --rounds 3 --only hot", ""),
    Benchmark(
        "workers", "reads.py", "--workers 1 2", f"{FEW} --workers 2 --without-limits --requests 16 --only health"
    ),
    Benchmark("peers", "peers.py", "", f"{FEW} --requests 16"),
    Benchmark("activity", "activity.py", "", "--calls 9000 --days 2 --rounds 3 --written 2000"),
    Benchmark("mixed", "mixed.py", "", f"{FEW} --requests 100 --warm-up 100"),
    Benchmark("writes", "writes.py", "--workers 1 2", f"{FEW} --requests 64 --only like"),
    Benchmark("beside", "beside.py", "", f"{FEW} --requests 64 --seconds 0.2 --only 'nothing|covers|genres, playlist'"),
    Benchmark("lists", "lists.py", "--clients 4", "--rows 1000 --rounds 1 --only artists --clients 2 --seconds 0.5"),
    Benchmark("insights", "insights.py", "", "--plays 5000 --rounds 0 --repeats 1 --only 'artist 30-days'"),
    Benchmark("plays", "plays.py", "--plays 10000000", "--plays 5000 --rounds 0 --batches 1"),
    Benchmark("histories", "plays.py", "--imported 100000 --postgres", "--imported 300 --rounds 0"),
    Benchmark("nodes", "nodes.py", "", ""),
    Benchmark("disk", "plays.py", "--disk --postgres", "--disk --plays 5000 --albums 240"),
    Benchmark("dumps", "dumps.py", "", "--plays 60 --late 20"),
    Benchmark("imports", "imports.py", "", "--rows 300 --rounds 0"),
    Benchmark("uploads", "uploads.py", "", f"{FEW} --rows 200 --seconds 0.3 --only 'hot|whole'"),
    Benchmark("startup", "startup.py", "", "--gigabytes 0.01 --rounds 0 --only 'GB.*KILL'"),
    Benchmark(
        "slow",
        "connections.py",
        "--only slow",
        f"--only 'slow|idle|albums' --clients 60 --patience 0.1 --idle 200 --scale 0.22 --readers 2 {SHORT}",
    ),
    Benchmark("idle", "connections.py", "--only idle", ""),
    Benchmark("unread", "connections.py", "--only unread", ""),
    Benchmark(
        "strangers",
        "strangers.py",
        "",
        "--only 'pictures|plays|links' --plays 700 --connections 4 --seconds 0.2 --people 3 --sessions 9",
    ),
    Benchmark("adverse", "adverse.py", "", "--only 'sign in|brackets|figures' --tracks 200 --seconds 0.5 --late 5"),
    Benchmark("large-bodies", "large_bodies.py", "", "--seconds 0.3 --only integers --late 5"),
)


def main() -> None:
    """Run the chosen benchmarks. Exit with 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="benchmarks whose name matches this pattern")
    parser.add_argument("--tiny", action="store_true", help="over little data")
    parser.add_argument("--list", action="store_true", help="print the commands only")
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    given = parser.parse_args()
    failed = []
    for each in BENCHMARKS:
        options = each.tiny if given.tiny else each.options
        if not re.search(given.only, each.name) or (given.tiny and not each.tiny):
            continue
        print(f"\n## {each.name}: python benchmarks/{each.program} {options}".rstrip(), flush=True)
        if given.list:
            continue
        began = time.perf_counter()
        line = [sys.executable, str(HERE / each.program), *shlex.split(options)]
        line += ["--against", str(given.against)] if given.against else []
        if subprocess.run(line, check=False).returncode:  # noqa: S603 - ours
            failed.append(each.name)
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
