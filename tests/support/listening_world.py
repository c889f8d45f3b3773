"""A small catalog with all cases that matter to figures, and its plays, likes and reposts.

track 0   album 0             artist 0
track 1   album 0             artists 0 and 1
track 2   no album            artist 1
track 3   album 1 (artist 2)  artists 2, 0 and 1
track 4   no album            artist 2, never played
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, merging
from musicsvc.store.engagement import likes as catalog_likes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.people import deletion
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection
from tests.support.oracle import GivenTo, Past, PlayOf

ALBUMS: tuple[tuple[int, ...], ...] = ((0,), (2,))
TRACKS: tuple[tuple[int | None, tuple[int, ...]], ...] = (
    (0, (0,)),
    (0, (0, 1)),
    (None, (1,)),
    (1, (2, 0, 1)),
    (None, (2,)),
)
ARTISTS = 3
# What files for royalty statements have of each: an album with codes, one without, a track with a date of its own.
OF_ALBUMS: tuple[dict[str, str], ...] = ({"upc": "036000291452", "label": "Rag & Sons"}, {})
OF_TRACKS: tuple[dict[str, str], ...] = (
    {"isrc": "DEZ992400001"},
    {},
    {"release_date": "1911-02-03"},
    {"isrc": "DEZ992400004"},
    {},
)
DAYS = f"SELECT DISTINCT slot / {SLOTS_PER_DAY} FROM play WHERE import_id = ? ORDER BY 1"


def edges(now: int) -> list[int]:
    """Return the first instant of each window and of the one before it, and the last instant before each."""
    today = now // DAY * DAY
    firsts = [today + DAY - windows * days * DAY for days in (7, 30, 90, 365) for windows in (1, 2)]
    return sorted({at for first in firsts for at in (first - 1, first)})


@dataclass
class Catalog:
    """The ids by the numbers above, the manager of everything, and the past for a recount."""

    manager: Identity
    token: str
    artists: list[int] = field(default_factory=list)
    albums: list[int] = field(default_factory=list)
    tracks: list[int] = field(default_factory=list)
    past: Past = field(default_factory=Past)
    _taken: set[tuple[int, int, str]] = field(default_factory=set)

    def add_plays(self, heard: Iterable[tuple[int, int, str] | PlayOf]) -> None:
        """Record plays, (track's id, time, listener's name), repeats included; in a writing unit."""
        batch = [PlayOf(*play) for play in heard]
        record(batch)
        for play in batch:
            key = play.track, play.at // SLOT, play.listener
            if key not in self._taken:
                self._taken.add(key)
                self.past.plays.append(play)

    def draw(self, seed: int, count: int, time: Callable[[random.Random], int]) -> list[PlayOf]:
        """Return random plays, most of them of the first track."""
        chance = random.Random(seed)
        return [
            PlayOf(self.tracks[chance.choice((0, 0, 0, 1, 3))], time(chance), str(chance.randrange(99)))
            for _ in range(count)
        ]

    def add_at_edges(self, now: int) -> None:
        """Record plays, likes and reposts at the edges of windows, in different numbers; in a writing unit."""
        first, second, *_ = self.tracks
        at_edges = edges(now)
        # Likes and reposts also in the last instant of today and in the first of tomorrow.
        given = [*at_edges, (now // DAY + 1) * DAY - 1, (now // DAY + 1) * DAY]
        self.add_plays((first, at, f"edge {at} {each}") for number, at in enumerate(at_edges) for each in range(number))
        self.give(
            [(each, at) for number, at in enumerate(given) for each in [first] * (number % 3 + 1)],
            [(each, at) for number, at in enumerate(given) for each in [second] * (number % 4 + 1)],
        )

    def give(self, likes: Iterable[tuple[int, int]], reposts: Iterable[tuple[int, int]]) -> None:
        """Record likes and reposts by new accounts, as (track's id, time); in a writing unit."""
        for table, given, kept in (
            (catalog_likes.LIKE, likes, self.past.likes),
            (catalog_likes.REPOST, reposts, self.past.reposts),
        ):
            new = [GivenTo(track, at) for track, at in given]
            names = [f"{table.__name__}{len(kept) + number}.{self.artists[0]}".lower() for number in range(len(new))]
            people = [users.NewUser(f"{name}@label.test", name) for name in names]
            for each, user in zip(new, users.create_many(people, now=0), strict=True):
                catalog_likes.add(table, each.track, now=each.at, actor=self.manager._replace(user_id=user))
            kept.extend(new)


def record(plays: Iterable[PlayOf], number: int = 0) -> None:
    """Record plays of an import (0 is none); in a writing unit."""
    batch = list(plays)
    ids = listeners.ensure({listeners.opaque_key(play.listener) for play in batch})
    ingest.record(
        ingest.PlayRow(at // SLOT, track, ids[listeners.opaque_key(name)], ingest.WITHOUT_ID, at, heard, 0, number)
        for track, at, name, heard in batch
    )


def withdraw(store: Store, number: int) -> None:
    """Delete the plays of an import, without its other rows."""
    days: Sequence[int] = [day for (day,) in store.read(partial(fetch, DAYS, number)).result()]
    while days:
        days = store.write(partial(withdrawal.withdraw, Selection("import_id = ?", (number,)), days)).result().days


def catalog(now: int) -> Catalog:
    """Create a catalog and its manager; in a writing unit."""
    number = Artist.select().count()
    user = users.create(f"manager{number}@label.test", api_access=True, now=now)
    token = tokens.create(user, "test", now=now)[1]
    manager = tokens.identify(tokens.digest(token))
    assert manager is not None
    made = Catalog(manager, token)
    for each in range(ARTISTS):
        made.artists.append(Artist.create(name=f"Artist {each}", manager=user.id, created_at=now).id)
    for each, artists in enumerate(ALBUMS):
        made.albums.append(Album.create(name=f"Album {each}", **OF_ALBUMS[each], created_at=now).id)
        for position, artist in enumerate(artists):
            AlbumArtist.create(album=made.albums[each], artist=made.artists[artist], position=position)
    for each, (album, artists) in enumerate(TRACKS):
        on = None if album is None else made.albums[album]
        track = Track.create(name=f"Track {each}", duration=1, album=on, **OF_TRACKS[each], created_at=now)
        made.tracks.append(track.id)
        for position, artist in enumerate(artists):
            TrackArtist.create(track=made.tracks[each], artist=made.artists[artist], position=position)
    _remember(made)
    return made


def _remember(made: Catalog) -> None:
    past = made.past
    past.names = {track: f"Track {each}" for each, track in enumerate(made.tracks)}
    past.album_names = {album: f"Album {each}" for each, album in enumerate(made.albums)}
    past.artist_names = {artist: f"Artist {each}" for each, artist in enumerate(made.artists)}
    for each, artists in enumerate(ALBUMS):
        for artist in artists:
            past.albums_by_artist.setdefault(made.artists[artist], []).append(made.albums[each])
    for each, (album, artists) in enumerate(TRACKS):
        if album is not None:
            past.on_album.setdefault(made.albums[album], []).append(made.tracks[each])
        for artist in artists:
            past.by_artist.setdefault(made.artists[artist], []).append(made.tracks[each])


def correct(made: Catalog, now: int) -> None:
    """Merge twins of the first track and artist, delete a played track, and erase a listener; in a writing unit.

    One play of the twin coincides with one of the first track, and the erased listener plays again under the same name.
    """
    past, first, artist = made.past, made.tracks[0], made.artists[0]
    twin, gone = (
        int(Track.create(name=name, duration=1, album=made.albums[0], created_at=now).id) for name in ("Twin", "Gone")
    )
    other = Artist.create(name="Artist Zero", manager=made.manager.user_id, created_at=now).id
    for track, credited in ((twin, artist), (gone, made.artists[1]), (made.tracks[4], other)):
        TrackArtist.create(track=track, artist=credited, position=9)
    past.on_album[made.albums[0]].append(gone)
    past.by_artist[made.artists[1]].append(gone)
    past.by_artist[artist].append(made.tracks[4])
    made.add_plays([(first, now - 3 * DAY, "erased"), (first, now - 45 * DAY, "erased")])
    record([PlayOf(twin, now - 3 * DAY, "erased")])
    for number in range(7):
        play = PlayOf(twin, now - 5 * number * DAY, f"of the twin {number % 3}")
        record([play])
        past.plays.append(play._replace(track=first))
    made.add_plays((gone, now - 9 * number * DAY, f"of the gone {number % 4}") for number in range(11))
    merging.merge("track", twin, first, now=now)
    merging.merge("artist", other, artist, now=now)
    deletions.delete_track(tracks.get(gone), now=now, account=None, actor="cli")
    deletion.erase_listener("erased", now=now)
    record([PlayOf(first, now - 2 * DAY, "erased")])
    past.plays.append(PlayOf(first, now - 2 * DAY, "erased and new"))


def two_years(now: int) -> Catalog:
    """Create the catalog with two years of plays, most of them in blocks of 32 days, and likes and reposts."""
    chance = random.Random(7)
    days = [min(int(chance.expovariate(1 / 60)), 799) for _ in range(1500)]
    heard = [
        (
            chance.choice((0, 0, 0, 1, 2, 3)),
            now - day * DAY - chance.randrange(1, 1400) * SLOT,
            str(chance.randrange(60)),
        )
        for day in days
    ]
    given = [[(chance.randrange(4), now - chance.randrange(1, 400) * DAY) for _ in range(40)] for _ in range(2)]
    made = catalog(now)
    made.add_plays([(made.tracks[track], at, name) for track, at, name in heard[:1000]])
    while blocks.roll_up(100):
        pass
    made.add_plays([(made.tracks[track], at, name) for track, at, name in heard[1000:]])
    made.give(*([(made.tracks[track], at) for track, at in some] for some in given))
    made.add_at_edges(now)
    return made


SHARED = 103  # tracks that an artist shares, each with another artist


def share_tracks(made: Catalog, now: int) -> None:
    """Let the first artist share many tracks, some on own albums, with ties in every figure of the rankings."""
    artist, past = made.artists[0], made.past
    for number in range(SHARED):
        partner = int(Artist.create(name=f"Partner {number}", manager=made.manager.user_id, created_at=1).id)
        album = made.albums[0]
        if number % 8 == 0:
            album = int(Album.create(name=f"Extra {number}", created_at=1).id)
            AlbumArtist.create(album=album, artist=artist, position=0)
            past.album_names[album] = f"Extra {number}"
            past.albums_by_artist[artist].append(album)
        track = int(Track.create(name=f"More {number}", duration=1, album=album, created_at=1).id)
        past.names[track] = f"More {number}"
        past.on_album.setdefault(album, []).append(track)
        for position, each in enumerate((artist, partner)):
            TrackArtist.create(track=track, artist=each, position=position)
            past.by_artist.setdefault(each, []).append(track)
        made.add_plays((track, now, str(each)) for each in range(number // 8 % 4 + 20))
        made.add_plays((track, now - 40 * DAY, str(each)) for each in range(number % 3))
    # More tracks with one of them than with others, and fewer plays.
    quiet = int(Track.create(name="Quiet", duration=1, created_at=1).id)
    past.names[quiet] = "Quiet"
    for position, each in enumerate((artist, next(each for each in past.by_artist if each not in made.artists))):
        TrackArtist.create(track=quiet, artist=each, position=position)
        past.by_artist[each].append(quiet)
