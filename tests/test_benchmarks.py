"""The benchmarks of `python benchmarks` run, and keep their guarantees; over little data they measure nothing."""

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
TINY = {
    each.name: each
    for each in runpy.run_path(str(FOLDER / "__main__.py"), run_name="benchmarks")["BENCHMARKS"]
    if each.tiny
}
# A part of what each prints.
SHOWN = {
    "hot": "| hot /healthz |",
    "cold": "| cold tracks/{track} |",
    "workers": "| hot /healthz |",
    "activity": "48 hours by address:",
    "mixed": "| mixed |",
    "writes": "| POST tracks/{id}/like |",
    "beside": "| genres, playlist |",
    "lists": "| artists |",
    "insights": "| artist 30-days figures |",
    "plays": "| POST /plays of 1,000 |",
    "disk": "SQLite: 1,200 tracks take",
    "dumps": "| after 20 late plays of a day |",
    "imports": "| 300 rows |",
    "uploads": "| hot reads |",
    "startup": "| 0.01 GB, after SIGKILL |",
    "slow": "60 slow ones",
    "idle": "200 idle connections",
    "unread": "2 that read nothing",
    "strangers": "links: 24 of 24 people are signed in",
    "adverse": "pages of the other account: 23 of 23",
    "large-bodies": "memory:",
}
# Run by `python benchmarks`, beside this checkout once more.
ALONE = "cold"

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


def run(*line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *line], capture_output=True, encoding="utf-8", timeout=600, check=False)


@pytest.mark.parametrize("name", sorted(TINY.keys() - {ALONE}))
def test_each_benchmark_runs_over_little_data(name: str) -> None:
    done = run(str(FOLDER / TINY[name].program), *shlex.split(TINY[name].tiny))
    assert done.returncode == 0, done.stdout + done.stderr
    assert SHOWN[name] in done.stdout


def test_one_command_compares_two_checkouts_over_little_data() -> None:
    done = run(str(FOLDER), "--tiny", "--only", f"^({ALONE}|postgres)$", "--against", str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"\n## {ALONE}: python benchmarks/{TINY[ALONE].program} {TINY[ALONE].tiny}\n")
    assert SHOWN[ALONE] in done.stdout
    assert "| now / before |" in done.stdout
    assert "postgres" not in done.stdout  # it has no run over little data
