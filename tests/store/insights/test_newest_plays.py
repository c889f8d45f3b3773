"""The newest plays of a track are found, however long ago they were, also on days when nothing else was played."""

from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import realtime
from tests.conftest import NOW
from tests.support.listening_world import catalog
from tests.support.play_counts import roll_up


def test_the_newest_plays_are_found_on_days_without_other_plays(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    track, other = made.tracks[4], made.tracks[2]
    times = [NOW - days * DAY for days in (9, 10, 399, 465, 1999)]
    heard = [(track, at, "ann") for at in times] + [(other, at - 2 * DAY, "ben") for at in times[:3]]
    store.write(partial(made.add_plays, heard)).result()
    roll_up(store)

    for limit in (1, 2, 4, 9):
        found = store.read(partial(realtime.newest, track, limit)).result()
        assert found == [realtime.LoggedPlay(at, "opaque:ann") for at in times[:limit]]
