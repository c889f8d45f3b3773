"""Fixtures for tests of processes: their data folder, their settings, a token, servers."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from tests.support.program import Program
from tests.support.reloads import SettingsFile
from tests.support.serving import person


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data folder of the programs that the test starts."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")  # the first one is logged after three seconds
    return tmp_path


@pytest.fixture
def migrated(folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data folder, with settings for a new database of the run's store."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    return folder


@pytest.fixture
def token(store_url: str, clock: MovableClock) -> str:
    """Return the token of ann@label.test, valid from now."""
    clock.advance(time.time_ns() // 1000 - clock.now())
    with opening.connect(store_url) as store:
        return person(store, clock, "ann@label.test")[1]


@pytest.fixture
def serve(migrated: Path) -> Iterator[Callable[..., Program]]:
    """Return a function that starts a server on a free port."""
    started: list[Program] = []

    def start(*options: str) -> Program:
        started.append(Program(migrated, "serve", "--port", "0", *options).__enter__())
        return started[-1]

    yield start
    for program in started:
        program.__exit__()


@pytest.fixture
def settings(tmp_path: Path) -> SettingsFile:
    """Return the settings file of the servers, with the old limit."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return SettingsFile(folder / "config.toml")
