"""Fixtures for tests of endpoints: accounts on a server that a module shares, and a server with a module's catalog."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.engine.store import Store
from tests.support.listening_world import Catalog
from tests.support.people import People
from tests.support.people import people as new_people
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client, running
from tests.support.shared_server import Shared

NUMBERS = count()


@pytest.fixture
def people(shared: Shared) -> People:
    """Three accounts that no other test knows."""
    return new_people(*shared, domain=f"people{next(NUMBERS)}.test")


@pytest.fixture
async def ask(store: Store, clock: MovableClock, made: Catalog) -> AsyncIterator[Client]:
    """A client with the manager's token that checks every answer against the OpenAPI document."""
    async with running(store, clock) as client:
        yield CheckedClient(client.session, client.root, made.token)
