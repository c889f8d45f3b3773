"""The benchmarks of `python benchmarks` run, and keep their guarantees; over little data they measure nothing."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked_benchmarks
from tests.support.preloaded import fork_server_of

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
TINY = {
    each.name: each
    for each in runpy.run_path(str(FOLDER / "__main__.py"), run_name="benchmarks")["BENCHMARKS"]
    if each.tiny
}
# A part of what each prints.
SHOWN = {
    "cold": "| cold tracks/{track} |",
    "workers": "| hot /healthz |",
    "peers": "| musicsvc, hot |",
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
    "histories": "| new |",
    "uploads": "| hot reads |",
    "startup": "| 0.01 GB, after SIGKILL |",
    "slow": "2 that read nothing",
    "strangers": "links: 3 of 3 people are signed in",
    "adverse": "pages of the other account: 23 of 23",
    "large-bodies": "memory:",
}
# Run by `python benchmarks`, beside this checkout once more.
ALONE = "cold"
WRITTEN = "peers"

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


@pytest.fixture(autouse=True)
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(ROOT)


def run(*line: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark."""
    if (server := fork_server_of("programs")) is not None:
        return forked_benchmarks.run(server, *line)
    return subprocess.run([sys.executable, *line], capture_output=True, encoding="utf-8", timeout=600, check=False)


@pytest.mark.parametrize("name", sorted(TINY.keys() - {ALONE, WRITTEN}))
def test_each_benchmark_runs_over_little_data(name: str) -> None:
    done = run(str(FOLDER / TINY[name].program), *shlex.split(TINY[name].tiny))
    assert done.returncode == 0, done.stdout + done.stderr
    assert SHOWN[name] in done.stdout


def test_one_command_compares_two_checkouts_over_little_data() -> None:
    line = [sys.executable, str(FOLDER), "--tiny", "--only", f"^({ALONE}|postgres)$", "--against", str(ROOT)]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"\n## {ALONE}: python benchmarks/{TINY[ALONE].program} {TINY[ALONE].tiny}\n")
    assert SHOWN[ALONE] in done.stdout
    assert "| now / before |" in done.stdout
    assert "postgres" not in done.stdout  # it has no run over little data


def test_the_table_of_peers_is_written_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page, options = tmp_path / "page.md", shlex.split(TINY[WRITTEN].tiny)
    marks = re.findall("<!-- .*? -->", (ROOT / "docs" / "development" / "performance.md").read_text("utf-8"))
    page.write_text("\n".join(["Before.", "", marks[0], "", "| old |", "", marks[1], "", "After.", ""]), "utf-8")
    done = run(str(FOLDER / TINY[WRITTEN].program), *options, "--write", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text("utf-8")
    table = text.removeprefix(f"Before.\n\n{marks[0]}\n\n").removesuffix(f"\n\n{marks[1]}\n\nAfter.\n")
    assert done.stdout.endswith(table + "\n")
    assert {line.count("|") for line in table.splitlines()} == {4}
    assert SHOWN[WRITTEN] in table
    left_out = {line.partition(" is left out: ")[0] for line in done.stdout.splitlines() if "left out" in line}
    assert [name for name in ("granian", "Robyn", "FastAPI") if (name in left_out) == (f"\n| {name}" in table)] == []
