"""Sums of titles that people hear and a catalog lacks: over at least five accounts, of one's own artists only."""

from functools import partial

import pytest

from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.listens import missing
from musicsvc.store.listens.missing import MissingTrack
from musicsvc.store.models import Artist
from tests.conftest import NOW
from tests.store.listens.test_resolving import hear, heard
from tests.support import reported_plays

MOST_PARAMETERS = 65_535  # of a statement on PostgreSQL; SQLite takes fewer


def test_titles_of_own_artists_that_five_accounts_heard_are_summed(store: Store) -> None:
    people = [
        store.write(partial(reported_plays.account, reports_plays=False, email=f"p{n}@label.test")).result()
        for n in range(6)
    ]
    manager, other = people[0].user_id, people[1].user_id
    store.write(lambda: Artist.create(name="ANN Example", manager=manager, created_at=NOW)).result()
    store.write(lambda: Artist.create(name="Ben Example", manager=other, created_at=NOW)).result()
    for place, person in enumerate(people):
        album = "First" if place else "Of one account"
        hear(store, person, *(heard(each, release=album) for each in range(place + 1)))
        hear(store, person, heard(20, title="Few") if place < 4 else heard(20, "ann example", "evening", release="Few"))
        hear(store, person, heard(30, "Ben Example", "Night"), heard(31, "Nobody", "Else"))
    hear(store, people[0], heard(40, title="Evening"))
    for place in range(1, 4):
        hear(store, people[place], *[heard(40, title="Evening")] * 2)
    ours = store.read(partial(missing.of_manager, manager)).result()
    assert ours == [
        MissingTrack("Ann Example", "Morning", "First", 21),
        MissingTrack("ann example", "evening", None, 6),
    ]
    assert store.read(partial(missing.of_manager, other)).result() == [MissingTrack("Ben Example", "Night", None, 6)]
    assert store.read(partial(missing.of_manager, people[2].user_id)).result() == []


@pytest.mark.slow
def test_managers_of_more_artists_than_a_statement_has_parameters_see_their_titles(store: Store) -> None:
    people = [
        store.write(partial(reported_plays.account, reports_plays=False, email=f"q{n}@label.test")).result()
        for n in range(missing.FEWEST_ACCOUNTS)
    ]
    manager = people[0].user_id
    rows = [(f"Artist {number}", manager, NOW) for number in range(MOST_PARAMETERS + 1)]
    store.write(lambda: bulk.insert(Artist, ("name", "manager", "created_at"), rows)).result()
    for person in people:
        hear(store, person, heard(1, rows[-1][0], "Last"))
    ours = store.read(partial(missing.of_manager, manager)).result()
    assert ours == [MissingTrack(rows[-1][0], "Last", None, missing.FEWEST_ACCOUNTS)]
