"""An account is deleted with its artists. What is of another's artist, too, stays with that one, and so do figures."""

from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import users
from musicsvc.store.catalog import changes
from musicsvc.store.editing import assignments
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Play,
    Track,
    TrackArtist,
    TrackLike,
    User,
)
from musicsvc.store.people import catalogs, deletion
from musicsvc.store.plays import periods
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ACCOUNT, ARTIST, TRACK, Subject
from musicsvc.store.security import security_events
from tests.conftest import NOW
from tests.support.listening_world import Catalog, catalog
from tests.support.undoing import require_sound

YEAR = periods.window("1-year", NOW)


def shared_world() -> tuple[Catalog, User]:
    """Create a catalog, of which another account manages the artist 1, with plays and likes; within a unit."""
    made = catalog(NOW)
    heir = users.create("heir@label.test", now=NOW)
    assignments.assign(made.artists[1], heir, now=NOW)
    led = Album.create(name="Led by the first", created_at=NOW).id
    for position, artist in enumerate((2, 1)):
        AlbumArtist.create(album=led, artist=made.artists[artist], position=position)
    solo = Artist.create(name="Solo", manager=made.manager.user_id, created_at=NOW).id
    for number in range(3):
        track = Track.create(name=f"Solo {number}", duration=1, album=made.albums[1], created_at=NOW).id
        TrackArtist.create(track=track, artist=solo, position=0)
    TrackArtist.create(
        track=Track.create(name="Guest", album=made.albums[1], duration=1, created_at=NOW).id,
        artist=made.artists[1],
        position=0,
    )
    made.albums.append(led)
    made.artists.append(solo)
    made.add_plays(made.draw(7, 150, lambda chance: NOW - chance.randrange(400) * DAY))
    made.give([(made.tracks[n % 4], NOW - n * DAY) for n in range(7)], [(made.tracks[1], NOW - n) for n in range(4)])
    blocks.roll_up(100)
    return made, heir


def figures_of(*subjects: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    found = [figures.figures(Subject(*subject), YEAR) for subject in subjects]
    return [(each.plays, each.listeners, each.likes, each.reposts) for each in found]


@pytest.mark.parametrize("before_it", [[], [2, 2]], ids=["at once", "some tracks before"])
def test_what_goes_and_stays_is_counted_and_figures_of_others_stay(store: Store, before_it: list[int]) -> None:
    made, heir = store.write(shared_world).result()
    owner = made.manager.user_id
    kept = [(ACCOUNT, heir.id), (ARTIST, made.artists[1]), (TRACK, made.tracks[1]), (TRACK, made.tracks[3])]
    before = store.read(partial(figures_of, *kept)).result()
    assert min(before[0]) > 0
    plays = store.read(Play.select().count).result()
    counted = store.read(partial(catalogs.count, owner)).result()
    assert counted.goes == {"artist": 3, "album": 2, "track": 5}
    assert counted.stays == {"album": 1, "track": 2}
    assert counted.kept == "1 album and 2 tracks"
    assert counted.plays == plays  # of all tracks that were played one of its artists has a part
    cursor = store.read(lambda: changes.since(None).cursor).result()

    for most in before_it:
        assert store.write(partial(catalogs.delete_some, owner, most)).result() == most
    delete = partial(deletion.delete, owner, with_artists=True, tracks=sum(before_it), now=NOW, actor="page")
    gone = store.write(delete).result()

    assert gone == {"artist": 3, "album": 2, "track": 5, "token": 1}
    require_sound(store)
    assert store.read(partial(figures_of, *kept)).result() == before
    assert store.read(Play.select().count).result() == plays

    def left() -> tuple[object, ...]:
        return (
            sorted(row.id for row in Artist.select()),
            sorted(row.id for row in Album.select()),
            sorted((row.name, row.album) for row in Track.select()),
            [(row.artist, row.position) for row in AlbumArtist.select()],
            sorted({row.track for row in TrackArtist.select()}),
            User.select().where(User.id == owner).count(),
            TrackLike.select().where(TrackLike.track == made.tracks[0]).count(),
        )

    names = [("Guest", None), ("Track 1", None), ("Track 2", None), ("Track 3", None)]
    artists, albums, tracks, credits_, credited, accounts, likes = store.read(left).result()
    assert (artists, albums, tracks) == ([made.artists[1]], [made.albums[2]], names)
    assert credits_ == [(made.artists[1], 0)]  # it is the first one now, by which imports find the album
    assert len(credited) == 4  # type: ignore[arg-type]
    assert (accounts, likes) == (0, 0)
    told = store.read(lambda: changes.since(cursor).rows).result()
    assert sum(each.change == "deleted" for each in told) == 3 + 2 + 5
    event = store.read(lambda: security_events.find(limit=1)).result()[0]
    assert (event.kind, event.reason) == ("account.deleted", "3 artists, 2 albums, 5 tracks, 1 token")
