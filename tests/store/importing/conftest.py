"""Fixtures for tests of imports."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.conftest import NOW
from tests.support.plays_import import Import, Rows, make_catalog, quiet


@pytest.fixture
def small_catalog(store: Store) -> None:
    store.write(make_catalog).result()


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Return a function that imports plays into the small catalog."""

    def run(rows: Rows, *, name: str = "rows.jsonl", now: int = NOW, **options: Any) -> ImportSummary:
        file = tmp_path / name
        file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        options.setdefault("listener", "me")
        with histories.open_file(file, "jsonl") as reader:
            return runner.run(store, reader, Plays(ImportOptions(**options)), now=now, on_progress=quiet)

    return run
