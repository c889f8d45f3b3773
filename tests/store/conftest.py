"""Fixtures of the tests of the store."""

from collections.abc import Iterator
from typing import Any

import pytest

from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store


@pytest.fixture
def log(store: Store) -> Iterator[Log]:
    """The open log of calls of the store."""
    with activity_log.build(store.url) as opened:
        opened.prepare()
        yield opened


@pytest.fixture
def admin(store_url: str) -> Iterator[Any]:
    """A separate connection, on PostgreSQL."""
    import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

    with psycopg.connect(store_url, autocommit=True) as connection:
        yield connection
