"""The benchmarks of `python benchmarks` run; over little data they measure nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.only_on("sqlite")
def test_each_benchmark_runs_over_little_data() -> None:
    line = [sys.executable, str(FOLDER), "--tiny"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=400, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "| hot genres |" in done.stdout
    assert "of bare (goal" in done.stdout
