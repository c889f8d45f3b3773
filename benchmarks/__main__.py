"""Run the benchmarks of the summary in docs/development/performance.md, one after the other.

    python benchmarks [--only NAME] [--tiny] [--list]

Each prints the table that its section of the page shows. `--tiny` runs them in seconds over little data: it shows that
they work, and measures nothing.
"""

import argparse
import importlib.util
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Benchmark(NamedTuple):
    """A program of this folder, its options and those of a run over little data, and a module that it needs."""

    name: str
    program: str
    options: str
    tiny: str
    needs: str = ""


BENCHMARKS = (
    Benchmark("reads", "reads.py", "", "--albums 240 --rounds 1 --requests 16 --only genres"),
    Benchmark("cold", "reads.py", "--albums 100000 --only cold --requests 2000", ""),
    Benchmark("postgres", "reads.py", "--postgres --rounds 3 --only hot", ""),
    Benchmark("beside-writes", "reads_beside_writes.py", "", "--albums 240 --rounds 1 --requests 16 --only genres"),
    Benchmark("mixed", "mixed.py", "", "--albums 240 --rounds 1 --requests 100 --warm-up 100"),
    Benchmark("writes", "writes.py", "--rounds 5 --workers 1 2", "--albums 240 --rounds 1 --requests 64 --only like"),
    Benchmark("beside", "hot_beside_work.py", "", "--albums 240 --rounds 1 --seconds 0.2 --only writes"),
    Benchmark("startup", "startup.py", "", "--gigabytes 0.01 --rounds 1 --only GB"),
    Benchmark("workers", "workers.py", "", "--albums 240 --rounds 1 --requests 64 --only healthz"),
    Benchmark("memory", "memory.py", "", ""),
    Benchmark(
        "peers",
        "compare_peers.py",
        "",
        "--albums 240 --rounds 1 --requests 16 --peer-requests 4",
        needs="rest_framework",
    ),
    Benchmark("deep-pages", "deep_pages.py", "", ""),
    Benchmark("long-lists", "long_lists.py", "", ""),
    Benchmark("insights", "insights.py", "", ""),
    Benchmark("insights-requests", "insights_requests.py", "", ""),
    Benchmark("dashboard", "dashboard.py", "", ""),
    Benchmark("plays", "plays.py", "", ""),
    Benchmark("post-plays", "post_plays.py", "", ""),
)


def command(program: str, options: str) -> list[str]:
    """Return the command line of a program of this folder."""
    return [sys.executable, str(HERE / program), *shlex.split(options)]


def main() -> None:
    """Run the chosen benchmarks. Exit with 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="benchmarks whose name matches this pattern")
    parser.add_argument("--tiny", action="store_true", help="over little data")
    parser.add_argument("--list", action="store_true", help="print the commands only")
    given = parser.parse_args()
    failed = []
    for each in BENCHMARKS:
        options = each.tiny if given.tiny else each.options
        if not re.search(given.only, each.name) or (given.tiny and not each.tiny):
            continue
        print(f"\n## {each.name}: python benchmarks/{each.program} {options}".rstrip(), flush=True)
        if given.list:
            continue
        if each.needs and importlib.util.find_spec(each.needs) is None:
            print("skipped: its packages are not installed")
            continue
        began = time.perf_counter()
        if subprocess.run(command(each.program, options), check=False).returncode:  # noqa: S603 - ours
            failed.append(each.name)
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
