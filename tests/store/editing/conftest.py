"""Fixtures for tests of edits, deletions and merges."""

from functools import partial

import pytest

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from tests.support.reported_plays import account, world


@pytest.fixture
def fans(store: Store) -> list[Identity]:
    store.write(world).result()
    return [store.write(partial(account, reports_plays=True, email=f"{name}@fan.test")).result() for name in "ab"]
