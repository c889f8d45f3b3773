"""Fixtures of the tests of the store."""

from collections.abc import Iterator

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
