"""The command line as a user calls it, on the store of the run."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.command import run_in_process

Run = Callable[..., CompletedProcess[str]]
Json = Callable[..., Any]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program with an empty data folder; whatever happens, there is no traceback and no word of the store."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, stdin: str = "", expect: int = 0) -> CompletedProcess[str]:
        done = run_in_process(arguments, stdin)
        assert done.returncode == expect, done
        assert "Traceback" not in done.stderr
        if expect == 1:
            assert done.stderr.startswith("Error: ")
            assert done.stderr.count("\n") == 1
            assert done.stdout == ""
        return done

    return run


@pytest.fixture
def run(bare: Run, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program on a fresh, migrated database."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    return bare


@pytest.fixture
def ask(run: Run) -> Json:
    """Runs a command with `--json`: stdout holds one JSON value and nothing else."""

    def ask(*arguments: str, stdin: str = "") -> Any:
        return json.loads(run(*arguments, "--json", stdin=stdin).stdout)

    return ask
