"""Likes and reposts by day equal those that stand, whoever gave them and withdrew them."""

import random
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import engagement_days, likes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from tests.conftest import NOW
from tests.support.postgres_locks import require_wait
from tests.support.query_count import statements
from tests.support.reported_plays import account, world

FANS = 5
WRONG_COUNTERS = """
    SELECT id FROM track WHERE likes_count <> (SELECT count(*) FROM track_like l WHERE l.track_id = track.id)
    OR reposts_count <> (SELECT count(*) FROM track_repost r WHERE r.track_id = track.id)
"""


def stored() -> dict[tuple[int, int, int], tuple[int, int]]:
    rows = fetch("SELECT kind, subject, day, likes, reposts FROM engagement_day")
    return {(kind, subject, day): (given, reposted) for kind, subject, day, given, reposted in rows if given + reposted}


def expected() -> dict[tuple[int, int, int], tuple[int, int]]:
    """Count the likes and reposts that stand, one by one."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    albums = dict(fetch("SELECT id, album_id FROM track"))
    artists = fetch("SELECT track_id, artist_id FROM track_artist")
    for place, table in enumerate(("track_like", "track_repost")):
        for track, at in fetch(f"SELECT track_id, created_at FROM {table}"):
            subjects = [(1, track), *((3, artist) for credited, artist in artists if credited == track)]
            if albums[track] is not None:
                subjects.append((2, albums[track]))
            for subject in subjects:
                counts.setdefault((*subject, at // DAY), [0, 0])[place] += 1
    return {key: (given, reposted) for key, (given, reposted) in counts.items()}


def test_every_day_has_the_likes_and_reposts_that_were_given_on_it_and_stand(store: Store) -> None:
    chance = random.Random(4)
    store.write(world).result()
    fans = [
        store.write(partial(account, reports_plays=False, email=f"fan{each}@label.test")).result()
        for each in range(FANS)
    ]

    def react() -> None:
        kind, track, fan = chance.choice((likes.LIKE, likes.REPOST)), chance.choice((1, 1, 2, 3)), chance.choice(fans)
        at = NOW - chance.choice((0, 1, DAY, 40 * DAY)) - NOW % DAY
        if chance.random() < 0.6:
            likes.add(kind, track, now=at, actor=fan)
        else:
            likes.remove(kind, track, actor=fan)

    def react_to_all(fan: Identity) -> None:
        for kind in (likes.LIKE, likes.REPOST):
            for track in (1, 2, 3):
                likes.add(kind, track, now=NOW - track * DAY, actor=fan)

    for _ in range(80):
        store.write(react).result()
        assert store.read(lambda: (stored(), engagement_days.wrong())).result() == (
            store.read(expected).result(),
            [],
        )
    assert len(store.read(stored).result()) > 9

    def remove_all(fan: Identity) -> int:
        with statements() as found:
            likes.remove_all(fan.user_id)
        return len(found)

    for fan in fans:
        store.write(partial(react_to_all, fan)).result()
        assert 0 < store.write(partial(remove_all, fan)).result() < 6, "a statement for each like"
        assert store.read(lambda: (stored(), engagement_days.wrong(), fetch(WRONG_COUNTERS))).result() == (
            store.read(expected).result(),
            [],
            [],
        )
    assert not store.read(stored).result()


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("kind", [likes.LIKE, likes.REPOST])
def test_what_is_given_and_withdrawn_waits_while_a_track_moves(store: Store, kind: likes.Kind) -> None:
    store.write(world).result()
    fan = store.write(partial(account, reports_plays=False)).result()
    for change in (partial(likes.add, kind, 2, now=NOW, actor=fan), partial(likes.remove, kind, 2, actor=fan)):
        require_wait(store, engagement_days.lock, change)
    assert store.read(stored).result() == {}
