"""The benchmarks of `python benchmarks` run; over little data they measure nothing."""

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import run_benchmark

FOLDER = Path(__file__).parents[1] / "benchmarks"
TINY = {
    each.name: each
    for each in runpy.run_path(str(FOLDER / "__main__.py"), run_name="benchmarks")["BENCHMARKS"]
    if each.tiny and not each.needs
}
# Run by `python benchmarks`, in new interpreters; the others have everything imported when they start.
ALONE = "beside-writes"
# A part of the table that each prints.
SHOWN = {
    "reads": "| hot genres |",
    "beside-writes": "| genres | playlist |",
    "mixed": "of bare (goal",
    "writes": "POST tracks/{id}/like\n  1 worker ",
    "beside": "| writes |",
    "startup": "| 0.01 GB, after SIGKILL |",
    "workers": "| hot /healthz |",
}

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


@pytest.mark.parametrize("name", sorted(TINY.keys() - {ALONE}))
def test_each_benchmark_runs_over_little_data(name: str) -> None:
    done = run_benchmark(FOLDER / TINY[name].program, *shlex.split(TINY[name].tiny), seconds=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SHOWN[name] in done.stdout


def test_one_command_runs_the_chosen_benchmarks_over_little_data() -> None:
    line = [sys.executable, str(FOLDER), "--tiny", "--only", f"^({ALONE}|memory)$"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"\n## {ALONE}: python benchmarks/{TINY[ALONE].program} {TINY[ALONE].tiny}\n")
    assert SHOWN[ALONE] in done.stdout
    assert "memory" not in done.stdout  # it has no run over little data
