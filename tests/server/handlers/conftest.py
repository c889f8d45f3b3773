"""Fixtures for tests of endpoints: accounts on the server that the tests of a module share."""

from itertools import count

import pytest

from tests.support.playlist_world import People
from tests.support.playlist_world import people as new_people
from tests.support.shared_server import Shared

NUMBERS = count()


@pytest.fixture
def people(shared: Shared) -> People:
    """Three accounts that no other test knows."""
    return new_people(*shared, domain=f"people{next(NUMBERS)}.test")
