"""The check of a SQLite file by a connection that has been open for long."""

from functools import partial

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist
from musicsvc.store.schema import schema


def rename(number: int) -> None:
    """Rename five of fifty artists, which were created before."""
    for place in range(5):
        Artist.update(name=f"Artist {number} {place}").where(Artist.id == (number * 5 + place) % 50 + 1).execute()


@pytest.mark.only_on("sqlite")
def test_indexes_of_names_that_another_connection_has_merged_are_no_damage(store: Store) -> None:
    store.write(Artist.insert_many([{"name": f"New {each}", "created_at": 1} for each in range(50)]).execute).result()
    for number in range(120):
        store.write(partial(rename, number)).result()
        if number % 7 == 0:
            assert store.read(schema.damage).result() == []
