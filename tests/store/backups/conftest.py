"""Fixtures for tests of backups: a folder for them, and a backup of another database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.store.backups import create
from tests.support.backed_up import add


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "backups"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def backup(new_database: Callable[..., str], tmp_path: Path) -> Path:
    """A backup of another database."""
    url = new_database()
    add(url, "new")
    return create.create(Path(url.removeprefix("sqlite:///")), tmp_path / "new.db").file


@pytest.fixture
def path(store_url: str) -> Path:
    """A closed database with one tag."""
    add(store_url, "old")
    return Path(store_url.removeprefix("sqlite:///"))
