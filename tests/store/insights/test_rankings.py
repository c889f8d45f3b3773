"""Rankings find the most played ones although they do not read the plays of all."""

import random
from collections import Counter
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import rankings
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT, window
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import TRACK
from tests.conftest import NOW

TRACKS = 40
LONG_AGO = 50  # days


def fill(recent: Counter[int], old: Counter[int]) -> None:
    """Create tracks of one artist, with plays of today and of long ago."""
    Artist.create(name="Artist", created_at=NOW)
    for number in range(TRACKS):
        track = Track.create(name=f"Track {number}", duration=1, created_at=NOW).id
        TrackArtist.create(track=track, artist=1, position=0)
    person = listeners.ensure(["opaque:x"])["opaque:x"]
    for counts, at in ((recent, NOW), (old, NOW - LONG_AGO * DAY)):
        slots = ((track, at // SLOT - number) for track, count in counts.items() for number in range(count))
        ingest.record(PlayRow(slot, track, person, WITHOUT_ID, slot * SLOT, None, 0) for track, slot in slots)


@pytest.mark.parametrize("seed", range(6))
def test_the_most_played_of_many_are_those_of_a_full_count(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    tracks = range(1, TRACKS + 1)
    recent = Counter({track: chance.choice((0, 1, 2, 2, 3, 9)) for track in tracks})
    old = Counter({track: chance.choice((0, 0, 1, 7, 12)) for track in tracks})
    store.write(partial(fill, recent, old)).result()
    order = sorted(tracks, key=lambda each: (recent[each], recent[each] + old[each], each), reverse=True)
    days = window("30-days", NOW)
    for count in (1, 5, TRACKS):
        expected = [each for each in order[:count] if recent[each]]
        assert store.read(partial(rankings.most_played, TRACK, tracks, days, count)).result() == expected
    ranked = store.read(partial(rankings.tracks_of_artist, 1, days)).result()
    assert [(row.id, row.plays, row.plays_total) for row in ranked] == [
        (each, recent[each], recent[each] + old[each]) for each in order[:10]
    ]


def test_tracks_with_too_few_plays_of_all_time_are_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    recent = Counter({track: 20 if track <= 10 else 2 for track in range(1, TRACKS + 1)})
    store.write(partial(fill, recent, Counter())).result()
    read: list[int] = []
    plays = Reader.plays

    def counting(reader: Reader, kind: int, ids: list[int]) -> dict[int, int]:
        read.extend(ids)
        return plays(reader, kind, ids)

    monkeypatch.setattr(Reader, "plays", counting)
    ranked = store.read(partial(rankings.tracks_of_artist, 1, window("30-days", NOW))).result()
    assert [row.id for row in ranked] == [*range(10, 0, -1)]
    assert len(read) == 16


@pytest.mark.slow
@pytest.mark.parametrize(("tracks", "small"), [(256, True), (257, False)])
def test_a_scope_of_at_most_256_tracks_is_small(store: Store, tracks: int, small: bool) -> None:
    def unit() -> int:
        """Create tracks that two artists of an account have made together."""
        manager = users.create("two@label.test", now=NOW).id
        for artist in (1, 2):
            Artist.create(name=f"Artist {artist}", manager=manager, created_at=NOW)
        for number in range(1, tracks + 1):
            Track.create(name=f"Track {number}", duration=1, created_at=NOW)
            for artist in (1, 2):
                TrackArtist.create(track=number, artist=artist, position=artist)
        return manager

    manager = store.write(unit).result()
    for scope in (Scope(artist=1), Scope(manager=manager)):
        assert store.read(scope.is_small).result() == small
