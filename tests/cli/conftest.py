"""Fixtures that run commands in the test process, on the store of the test."""

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
    """Return a function that runs a command with an empty data folder and checks that it prints no traceback."""
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
    """Return a function that runs a command on a new database."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    return bare


@pytest.fixture
def ask(run: Run) -> Json:
    """Return a function that runs a command with `--json` and returns its JSON value."""

    def ask(*arguments: str, stdin: str = "") -> Any:
        return json.loads(run(*arguments, "--json", stdin=stdin).stdout)

    return ask
