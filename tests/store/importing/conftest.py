"""Fixtures for tests of imports."""

from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.conftest import NOW
from tests.support.import_files import Import, Rows, import_file
from tests.support.plays_import import make_catalog


@pytest.fixture
def small_catalog(store: Store) -> None:
    store.write(make_catalog).result()


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Return a function that imports plays into the small catalog."""

    def run(rows: Rows, *, name: str = "rows.jsonl", now: int = NOW, **options: Any) -> ImportSummary:
        options.setdefault("listener", "me")
        return import_file(store, tmp_path / name, Plays(ImportOptions(**options)), rows, now=now)

    return run
