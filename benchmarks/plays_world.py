"""Synthetic plays for benchmarks: tracks with a Zipf distribution, random listeners, and all rollups.

The rows are written a day at a time, with the same result as if each play had been recorded alone. The same size gives
the same data. Of the 200 most played tracks four artists have 50 each in turn, of the next 200 four others, and so on;
albums have ten tracks each. Track 1 is the most played one, and artist 1 the one with the most plays.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from musicsvc.clock import parse
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Follow,
    Listener,
    Play,
    PlayDay,
    Track,
    TrackArtist,
    TrackLike,
    TrackPlays,
    TrackRepost,
)
from musicsvc.store.plays import daily
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, day_of
from musicsvc.store.plays.rollups import day_parts, histograms, listeners, monthly
from musicsvc.store.plays.subjects import ALBUM, ARTIST, KINDS, TRACK
from musicsvc.store.schema import schema

NOW = parse("2026-03-01T23:59:00Z")  # at the end of a day, so that every day is whole
RELEASED = "2026-01-15"  # all albums
MANAGER = "manager@label.test"
PEOPLE = 2_000  # accounts that like, repost and follow
ARTISTS_IN_TURN, TRACKS_AN_ARTIST, TRACKS_AN_ALBUM = 4, 50, 10
LENGTH = 200_000  # milliseconds, of every track
ROWS_A_UNIT = 50_000
SUBJECTS_A_UNIT = 5_000
SUBJECTS_A_FOLD = 20_000

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the synthetic data."""

    plays: int
    tracks: int = 100_000
    listeners: int = 200_000
    days: int = 365

    @property
    def end(self) -> int:
        """The day after the last one, which is that of NOW."""
        return day_of(NOW) + 1


def new(folder: Path, size: Size, echo: Callable[[str], None] = print) -> Store:
    """Open a SQLite store with synthetic data in this folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "musicsvc.db"
    files.create(file)
    schema.upgrade(f"sqlite:///{file}")
    store = opening.connect(f"sqlite:///{file}")
    fill(store, size, echo)
    return store


def kept(folder: Path, plays: int) -> Store:
    """Open the store with this number of plays in a folder. It is created, or brought up to date, if necessary."""
    if not folder.exists():
        return new(folder, Size(plays))
    url = f"sqlite:///{folder / 'musicsvc.db'}"
    schema.upgrade(url)
    return opening.connect(url)


def token(store: Store) -> str:
    """Create a token of the artist's manager."""
    return store.write(lambda: tokens.create(users.by_email(MANAGER), "benchmark", now=NOW)).result()[1]


def fill(store: Store, size: Size, echo: Callable[[str], None] = print) -> None:
    """Fill an empty store."""
    people = store.write(_people).result()
    for table, fields, rows in _catalog(size, people):
        for some in _units(rows):
            store.write(partial(bulk.insert, table, fields, some)).result()
    store.write(_count_likes).result()
    stream = _Stream(size)
    for day in range(size.end - size.days, size.end):
        store.write(partial(stream.write_day, day)).result()
        while store.write(partial(monthly.roll_up, SUBJECTS_A_FOLD)).result():
            pass
    store.write(stream.write_totals).result()
    echo(f"{sum(stream.totals.values()):,} plays created")


def artist_of(track: int) -> int:
    """Return the artist of a track; the id of a track is its rank."""
    rank = track - 1
    return rank // (ARTISTS_IN_TURN * TRACKS_AN_ARTIST) * ARTISTS_IN_TURN + rank % ARTISTS_IN_TURN + 1


def album_of(track: int) -> int:
    """The album of a track."""
    place = (track - 1) // ARTISTS_IN_TURN % TRACKS_AN_ARTIST
    return (artist_of(track) - 1) * (TRACKS_AN_ARTIST // TRACKS_AN_ALBUM) + place // TRACKS_AN_ALBUM + 1


def _people() -> list[int]:
    """Create the account of the manager, then the others."""
    manager = users.create(MANAGER, api_access=True, now=NOW)
    tokens.create(manager, "benchmark", now=NOW)
    return [manager.id, *(users.create(f"p{n}@label.test", now=NOW).id for n in range(PEOPLE))]


def _catalog(size: Size, people: list[int]) -> Iterator[tuple[Any, tuple[str, ...], Iterable[tuple[Any, ...]]]]:
    tracks = range(1, size.tracks + 1)
    manager, *others = people
    artists = {artist_of(track): None for track in tracks}
    albums = {album_of(track): artist_of(track) for track in tracks}
    yield Artist, ("id", "name", "manager", "created_at"), ((n, f"Artist {n}", manager, NOW) for n in artists)
    yield Album, ("id", "name", "release_date", "created_at"), ((n, f"Album {n}", RELEASED, NOW) for n in albums)
    yield AlbumArtist, ("album", "artist", "position"), ((*pair, 0) for pair in albums.items())
    columns = ("id", "name", "duration", "album", "created_at")
    yield Track, columns, ((n, f"Track {n}", LENGTH, album_of(n), NOW) for n in tracks)
    yield TrackArtist, ("track", "artist", "position"), ((n, artist_of(n), 0) for n in tracks)
    names = ((n, listeners.opaque_key(f"l{n}")) for n in range(1, size.listeners + 1))
    yield Listener, ("id", "key"), names
    yield Follow, ("follower", "followed", "created_at"), ((each, manager, NOW) for each in others)
    for table in (TrackLike, TrackRepost):
        yield table, ("track", "user", "created_at"), _given(size, others)


def _count_likes() -> None:
    engagement_days.rebuild({(each.kind, each.subject) for each in engagement_days.wrong()})


def _given(size: Size, people: list[int]) -> Iterator[tuple[Any, ...]]:
    """Create likes or reposts of the hundred most played tracks by half of all accounts, at random times."""
    chance = random.Random("given").random  # noqa: S311 - no secrets
    for track in range(1, min(100, size.tracks) + 1):
        for person in people[track % 2 :: 2]:
            yield track, person, NOW - int(chance() * size.days * SLOTS_PER_DAY) * SLOT


class _Stream:
    """The plays of one day after the other."""

    def __init__(self, size: Size) -> None:
        self.totals: Counter[int] = Counter()
        self._size = size
        self._tracks = range(1, size.tracks + 1)
        self._weights = list(accumulate(1 / rank for rank in self._tracks))

    def write_day(self, day: int) -> None:
        """Write the plays of a day and their rollups."""
        drawn = self._draw(day)
        by_subject: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)
        for slot, track, listener in drawn:
            play = listener, histograms.pack(day * SLOTS_PER_DAY + slot, _duration(slot, listener), LENGTH)
            for subject in ((TRACK, track), (ALBUM, album_of(track)), (ARTIST, artist_of(track))):
                by_subject[subject].append(play)
        self.totals.update(track for _, track, _ in drawn)
        start = day * SLOTS_PER_DAY
        columns = ("slot", "track", "listener", "client_key", "played_at", "duration_ms", "reporter")
        plays: Rows = [
            (start + slot, track, listener, WITHOUT_ID, (start + slot) * SLOT, _duration(slot, listener), 0)
            for slot, track, listener in drawn
        ]
        days: Rows = [
            (
                daily.key(day, *subject),
                len(some),
                listeners.merge([listeners.pack(listener for listener, _ in some)]),
                histograms.merge([b"".join(packed for _, packed in some)]),
            )
            for subject, some in sorted(by_subject.items())
        ]
        bulk.insert(Play, columns, plays)
        bulk.insert(PlayDay, ("key", "plays", "listeners", "histogram"), days)
        for kind in KINDS.values():
            day_parts.replace(day, kind, [subject for each, subject in by_subject if each == kind])

    def _draw(self, day: int) -> list[tuple[int, int, int]]:
        """(slot of the day, track, listener) of the day's plays, in the order of the key; none twice."""
        chance = random.Random(day)  # noqa: S311 - times and listeners, no secrets
        first = self._size.end - self._size.days
        wanted = self._size.plays * (day + 1 - first) // self._size.days
        wanted -= self._size.plays * (day - first) // self._size.days
        tracks = chance.choices(self._tracks, cum_weights=self._weights, k=wanted)
        some, people = chance.random, self._size.listeners
        return sorted({(int(some() * SLOTS_PER_DAY), track, 1 + int(some() * people)) for track in tracks})

    def write_totals(self) -> None:
        """Write the number of plays of each track."""
        bulk.insert(TrackPlays, ("track", "plays"), sorted(self.totals.items()))


def _duration(slot: int, listener: int) -> int:
    """Return how long a play lasted: anything up to a tenth more than its track."""
    return (slot * 7_919 + listener * 104_729) % (LENGTH * 11 // 10)


def _units(rows: Iterable[tuple[Any, ...]]) -> Iterator[Rows]:
    some: Rows = []
    for row in rows:
        some.append(row)
        if len(some) == ROWS_A_UNIT:
            yield some
            some = []
    yield some
