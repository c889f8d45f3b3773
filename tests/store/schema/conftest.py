"""Databases of earlier versions."""

from collections.abc import Callable

import pytest

from tests.support import upgrades

Old = Callable[[str, str], str]


@pytest.fixture
def old(new_database: Callable[..., str]) -> Old:
    """Creates a database that has had the migrations up to one, with rows, and returns its address."""

    def make(last: str, rows: str) -> str:
        url = new_database(migrated=False)
        upgrades.migrate_to(url, last, *rows.split(";"))
        return url

    return make
