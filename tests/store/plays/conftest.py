"""The account that reports plays in tests of their ingestion."""

import pytest

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from tests.support.reported_plays import account, world


@pytest.fixture
def reporter(store: Store) -> Identity:
    """An account that may report for others, in a store with three tracks."""
    store.write(world).result()
    return store.write(lambda: account(reports_plays=True)).result()
