"""The store behind pgbouncer in transaction mode."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from musicsvc.store import opening
from musicsvc.store.catalog import changes
from musicsvc.store.engine.sql import fetch, stream_rows
from musicsvc.store.models import Artist, Tag
from musicsvc.store.schema import history, schema
from tests.support.pgbouncer import pooled

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.only_on("postgres")
SETTINGS = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"


@pytest.fixture
def pooled_url(new_database: Callable[..., str], tmp_path: Path) -> Iterator[str]:
    """The address of an empty database through pgbouncer, which has two connections for all its clients."""
    with pooled(new_database(migrated=False), tmp_path / "pgbouncer", default_pool_size=2) as url:
        yield url


def test_a_database_is_created_and_used_through_a_pooler(pooled_url: str) -> None:
    assert schema.upgrade(pooled_url) == history.available()

    with opening.connect(pooled_url) as store:
        for number in range(20):
            store.write(partial(Tag.create, name=f"tag {number}")).result()
        tags = [store.read(lambda: list(stream_rows("SELECT name FROM tag ORDER BY id"))) for _ in range(20)]
        assert [len(each.result()) for each in tags] == [20] * 20


def test_changes_of_the_catalog_are_numbered_through_a_pooler(pooled_url: str) -> None:
    schema.upgrade(pooled_url)

    with opening.connect(pooled_url) as store:
        begin = store.read(partial(changes.since, None)).result().cursor
        for number in range(9):
            store.write(partial(Artist.create, name=f"artist {number}", created_at=1)).result()
        rows = store.read(partial(changes.since, begin)).result().rows
    assert [(row.id, row.change) for row in rows] == [(number, "created") for number in range(1, 10)]


def test_every_transaction_has_its_timeouts_through_a_pooler(pooled_url: str) -> None:
    schema.upgrade(pooled_url)

    with opening.connect(pooled_url) as store:
        for use in (store.read, store.write):
            assert use(lambda: fetch(SETTINGS)).result() == [("250ms", "1min")]
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as other:
        assert other.execute(SETTINGS).fetchall() == [("0", "0")]
