"""A small catalog with all cases that matter to figures, and its plays, likes and reposts.

track 0   album 0             artist 0
track 1   album 0             artists 0 and 1
track 2   no album            artist 1
track 3   album 1 (artist 2)  artists 2, 0 and 1
track 4   no album            artist 2, never played
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, Self

from musicsvc.clock import DAY
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, merging
from musicsvc.store.engagement import likes as catalog_likes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import listening, milestones, releases
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.people import deletion
from musicsvc.store.plays import ingest, reattribution
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window, to_date
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.support import listening_oracle as oracle
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
EMPTY = "\u2013"  # in place of a figure that does not exist
LENGTHS = (200_000, 59_999, 0, 20_001, 7)  # milliseconds, of the tracks of listening_world


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

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        ids = {"artists": [*self.artists], "albums": [*self.albums], "tracks": [*self.tracks]}
        past = copy.deepcopy(self.past, memo)
        return type(self)(self.manager, self.token, **ids, past=past, _taken={*self._taken})

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
        PlayRow(at // SLOT, track, ids[listeners.opaque_key(name)], ingest.WITHOUT_ID, at, heard, 0, number)
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
    deletions.delete(tracks.get(gone), now=now, account=None, actor="cli")
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


def fill(now: int) -> Catalog:
    """Create a catalog in which no two counts are equal, and no list is empty."""
    chance = random.Random(5)
    made = catalog(now)
    _fill_other(now, made)
    tracks = [chance.choice((0, 0, 0, 0, 1, 1, 2, 3)) for _ in range(900)]
    days = [min(int(chance.expovariate(1 / 60)), 780) for _ in tracks]
    people = [int(chance.triangular(0, 400, 60)) for _ in tracks]
    made.add_plays(
        (made.tracks[track], now - day * DAY - chance.randrange(2000) * SLOT, str(person))
        for track, day, person in zip(tracks, days, people, strict=True)
    )
    made.add_plays((made.tracks[0], now - minute * 60_000_000, f"now {minute}") for minute in range(30))
    _add_durations(made, now, chance)
    for name in ("Album 2", "Album 3", "Album 4"):  # without tracks
        AlbumArtist.create(album=Album.create(name=name, created_at=now).id, artist=made.artists[0], position=0)
    given = [(made.tracks[chance.randrange(4)], now - chance.randrange(300) * DAY) for _ in range(50)]
    made.give(given[:25], given[25:])
    correct(made, now)
    return made


def _fill_other(now: int, made: Catalog) -> None:
    """Create the catalog of another account, and an artist of it on the third track and second album."""
    other = catalog(now)
    TrackArtist.create(track=made.tracks[2], artist=other.artists[0], position=7)
    AlbumArtist.create(album=made.albums[1], artist=other.artists[0], position=7)


def _add_durations(made: Catalog, now: int, chance: random.Random) -> None:
    """Record plays with a duration, also on the first days of both albums."""
    Track.update(duration=200_000).where(Track.id.in_(made.tracks)).execute()
    Album.update(release_date="2026-02-10").where(Album.id == made.albums[0]).execute()
    Album.update(release_date="2026-02-20").where(Album.id == made.albums[1]).execute()
    AlbumArtist.create(album=made.albums[1], artist=made.artists[0], position=1)
    record(
        PlayOf(
            made.tracks[(0, 3, 1, 0, 2)[number % 5]],
            now - chance.randrange(24 * 60) * DAY // 60 // 24 * 40,
            f"long {number % 40}",
            chance.randrange(210_000),
        )
        for number in range(240)
    )


@dataclass
class TimedWorld:
    """A catalog whose tracks have lengths, and everything played."""

    store: Store
    made: Catalog
    lengths: dict[int, int]
    plays: dict[tuple[int, int, str], PlayOf] = field(default_factory=dict)
    imported: dict[tuple[int, int, str], int] = field(default_factory=dict)  # the import that brought a play, or 0

    @classmethod
    def create(cls, store: Store, now: int) -> TimedWorld:
        made = store.write(partial(catalog, now)).result()
        world = cls(store, made, dict.fromkeys(made.tracks, 1))
        world.measure(dict(zip(made.tracks, LENGTHS, strict=True)))
        return world

    def on_copy(self, store: Store) -> TimedWorld:
        """Return this world for a copy of its database, so that it can change there."""
        return replace(
            self,
            store=store,
            made=copy.deepcopy(self.made),
            lengths=dict(self.lengths),
            plays=dict(self.plays),
            imported=dict(self.imported),
        )

    def play(self, batch: Iterable[PlayOf], number: int = 0) -> None:
        """Record plays of an import (0 is none); a later one of the same half minute is a repeat."""
        plays = sorted(batch, key=lambda play: (play.at // SLOT, play.track, play.listener, play.at))

        self.store.write(partial(record, plays, number)).result()
        for play in plays:
            key = play.at // SLOT, play.track, play.listener
            if self.plays.setdefault(key, play) is play:
                self.imported[key] = number

    def undo(self, number: int) -> None:
        """Take the plays of an import back."""
        withdraw(self.store, number)
        for key in [key for key, by in self.imported.items() if by == number]:
            del self.plays[key], self.imported[key]

    def measure(self, lengths: dict[int, int]) -> None:
        """Change the lengths of tracks as an import does."""

        def unit() -> None:
            with reattribution.rebuilding(list(lengths)):
                for track, length in lengths.items():
                    Track.update(duration=length).where(Track.id == track).execute()

        self.store.write(unit).result()
        self.lengths |= lengths

    def move(self, track: int, album: int | None) -> None:
        """Move a track to another album as an import does."""

        def unit() -> None:
            with reattribution.rebuilding([track]):
                Track.update(album=album).where(Track.id == track).execute()

        self.store.write(unit).result()
        for members in self.made.past.on_album.values():
            if track in members:
                members.remove(track)
        if album is not None:
            self.made.past.on_album[album].append(track)

    def roll_up(self) -> None:
        while self.store.write(partial(blocks.roll_up, 1000)).result():
            pass

    def subjects(self) -> dict[Subject, list[PlayOf]]:
        """Return all tracks, albums and artists with their plays."""
        past = self.made.past
        tracks = {Subject(TRACK, each): [each] for each in self.made.tracks}
        tracks |= {Subject(ALBUM, each): past.on_album.get(each, []) for each in self.made.albums}
        tracks |= {Subject(ARTIST, each): past.by_artist[each] for each in self.made.artists}
        return {
            subject: [play for play in self.plays.values() if play.track in members]
            for subject, members in tracks.items()
        }

    def release(self, album: int, released: int) -> None:
        """Set the release date of an album to a day since 1970."""
        text = to_date(released).isoformat()
        self.store.write(Album.update(release_date=text).where(Album.id == album).execute).result()

    def check_release(self, album: int, days: int, now: int) -> None:
        """Compare the days since the release of an album with the oracle."""
        (found,) = self.store.read(partial(releases.build, [album], days, now)).result()
        plays = self.subjects()[Subject(ALBUM, album)]
        assert found.release_date is not None
        expected = oracle.release(plays, date.fromisoformat(found.release_date), days, to_date(now // DAY))
        assert [point._asdict() for point in found.points] == expected

    def check(self, *windows: Window) -> None:
        """Compare the figures of all subjects with the oracle."""
        for subject, plays in self.subjects().items():
            found = shapes.milestones(self.store.read(partial(milestones.build, subject)).result())
            assert found == oracle.milestones(plays), (found, oracle.milestones(plays), subject)
            for window in windows:
                self.check_window(subject, plays, window)

    def check_window(self, subject: Subject, plays: list[PlayOf], window: Window) -> None:
        """Compare listening and hours in a window with the oracle; `plays` are those of the subject."""
        days = to_date(window.first), to_date(window.end - 1)
        heard, of_week = self.store.read(partial(listening.build, subject, window)).result()
        assert of_week == self.store.read(partial(listening.hours, subject, window)).result()
        assert of_week.plays == oracle.hours(plays, *days)
        found = shapes.listening(heard)
        assert found.pop("period") == {"name": "", "start": days[0].isoformat(), "end": days[1].isoformat()}
        assert found == oracle.listening(plays, self.lengths, *days)
