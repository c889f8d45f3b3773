"""Artists that change their manager take their plays and likes along, and a recount finds the same figures."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import assignments, deletions
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures
from musicsvc.store.models import Artist
from musicsvc.store.plays import periods
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ACCOUNT, Subject
from tests.conftest import NOW
from tests.support.examples import examples
from tests.support.listening_world import Catalog, catalog
from tests.support.undoing import require_sound

YEAR = periods.window("1-year", NOW)
STEPS = some.lists(some.tuples(some.integers(0, 3), some.integers(0, 1)), min_size=1, max_size=4)


def assign(made: Catalog, accounts: list[int], artist: int, account: int) -> None:
    """Assign an artist, or with number 3 all artists of the other account; within a unit."""
    user, other = (users.get(accounts[each]) for each in (account, 1 - account))
    if artist == len(made.artists):
        assignments.assign_all(other, user, now=NOW)
    else:
        assignments.assign(made.artists[artist], user, now=NOW)


def delete(track: int) -> None:
    deletions.delete(tracks.get(track), now=NOW, account=None, actor="cli")


def of_account(account: int) -> tuple[int, int, int, int]:
    found = figures.figures(Subject(ACCOUNT, account), YEAR)
    return found.plays, found.listeners, found.likes, found.reposts


def expected(made: Catalog, account: int) -> tuple[int, int, int, int]:
    """Return the figures of the artists that the account manages, from single plays; within a unit."""
    managed = {each.id for each in Artist.select().where(Artist.manager == account)}
    tracks = {track for each in managed for track in made.past.by_artist[each]}
    heard = [play for play in made.past.plays if play.track in tracks and YEAR.starts <= play.at < YEAR.ends]
    given = [
        sum(each.track in tracks and YEAR.starts <= each.at < YEAR.ends for each in some)
        for some in (made.past.likes, made.past.reposts)
    ]
    return len(heard), len({play.listener for play in heard}), given[0], given[1]


@pytest.mark.slow
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, seed=some.integers(0, 9))
def test_an_account_has_the_plays_of_its_artists(
    new_database: Callable[..., str], steps: list[tuple[int, int]], seed: int
) -> None:
    with opening.connect(new_database()) as store:
        require_moves(store, steps, seed)


def require_moves(store: Store, steps: list[tuple[int, int]], seed: int) -> None:
    made = store.write(partial(catalog, NOW)).result()
    accounts = [made.manager.user_id, store.write(lambda: users.create("heir@label.test", now=NOW).id).result()]
    plays = made.draw(seed, 200, lambda chance: NOW - chance.randrange(400) * DAY)
    gifts = [[(made.tracks[number % 4], NOW - number * DAY) for number in range(count)] for count in (7, 5)]
    store.write(partial(made.add_plays, plays[:150])).result()
    store.write(partial(made.give, *gifts)).result()
    store.write(partial(blocks.roll_up, 100)).result()
    for step in steps:
        store.write(partial(assign, made, accounts, *step)).result()
        for account in accounts:
            found = store.read(partial(of_account, account)).result()
            assert found == store.read(partial(expected, made, account)).result()
    store.write(partial(made.add_plays, plays[150:])).result()
    store.write(partial(delete, made.tracks[1])).result()
    require_sound(store)
    store.write(partial(assign, made, accounts, 3, 1)).result()
    require_sound(store)
    plays_left, *_ = store.read(partial(of_account, accounts[0])).result()
    assert plays_left == 0
