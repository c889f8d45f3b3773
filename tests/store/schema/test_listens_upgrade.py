"""The upgrade that adds listens to a database with plays and changes of the catalog."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from musicsvc.store import opening
from musicsvc.store.catalog import changes
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import fetch
from musicsvc.store.listens import resolving
from musicsvc.store.models import Artist, ListenProgress, Play
from musicsvc.store.schema import history, schema
from tests.conftest import NOW

FIELDS = ("slot", "track", "listener", "client_key", "played_at", "reporter", "reported_at")
ROWS = [(7, 1, 3, b"", 210, 0, None), (8, 2, 3, b"k" * 16, 240, 5, 11)]


def test_plays_stay_as_they_were_and_changes_of_before_are_not_looked_at(
    new_database: Callable[..., str], tmp_path: Path
) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available():
        if name < "0011":
            shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with opening.open_unchecked(url) as store:
        store.write(_fill).result()
        (last,) = store.read(lambda: fetch("SELECT max(position) FROM catalog_change")[0]).result()
    assert "0011_listens" in schema.upgrade(url)
    with opening.connect(url) as store:
        plays: list[Any] = store.read(lambda: list(Play.select().order_by(Play.slot).tuples())).result()
        assert [(*row[:5], row[6], row[9]) for row in plays] == ROWS
        assert {row[10:] for row in plays} == {(None,) * 4}
        progress = store.read(ListenProgress.get).result()
        assert (progress.position, progress.seen) == (last, 0) == (store.read(changes.last).result(), 0)
        assert store.read(resolving.is_due).result() is False
        assert store.read(schema.problems).result() == []


def _fill() -> None:
    bulk.insert(Play, FIELDS, ROWS)
    for name in ("Ann", "Ben", "Cleo"):
        Artist.create(name=name, created_at=NOW)
