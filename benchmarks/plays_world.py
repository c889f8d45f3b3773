"""A made world of plays for benchmarks: tracks after Zipf, listeners at random, with the rows that plays keep up.

The rows are written as they would stand had every play come in by itself, a hundred times as fast. The same size gives
the same world. Artist 1 has the 50 most played tracks, artist 2 the next 50, and so on; albums hold ten each.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import floor
from typing import TYPE_CHECKING, Any

from musicsvc.clock import parse
from musicsvc.store import bulk, database, listeners, schema, sqlite_files, tokens, users
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Listener,
    Play,
    PlayDay,
    PlayTotal,
    Track,
    TrackArtist,
)
from musicsvc.store.plays import SLOT, WITHOUT_ID
from musicsvc.store.rollups import ALBUM, ARTIST, SLOTS_A_DAY, TRACK
from musicsvc.store.windows import day_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from musicsvc.store.database import Store

NOW = parse("2026-03-01T23:59:00Z")  # at the end of a day, so that every day is whole
MANAGER = "manager@label.test"
TRACKS_AN_ARTIST, TRACKS_AN_ALBUM = 50, 10
PLAYS_A_UNIT = 200_000
ROWS_A_UNIT = 50_000

Sets = dict[int, list[int]]  # by day, an entry for each play


@dataclass(frozen=True, slots=True)
class Size:
    """How large a world is."""

    plays: int
    tracks: int = 100_000
    listeners: int = 200_000
    days: int = 365

    @property
    def first_day(self) -> int:
        """The first day of plays; the last one is that of NOW."""
        return day_of(NOW) + 1 - self.days


def new(folder: Path, size: Size) -> Store:
    """An open SQLite store over a world made in this folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "musicsvc.db"
    sqlite_files.create(file)
    url = f"sqlite:///{file}"
    schema.upgrade(url)
    store = database.connect(url)
    fill(store, size)
    return store


def fill(store: Store, size: Size) -> None:
    """Make the world in an empty store."""
    manager, _ = store.write(_people).result()
    store.write(partial(_catalog, size, manager)).result()
    names = ((number, listeners.opaque_key(f"l{number}")) for number in range(1, size.listeners + 1))
    for some in _units(names):
        store.write(partial(bulk.insert, Listener, ("id", "key"), some)).result()
    some_rows, waiting = _Rows(), 0
    for first, counts in _artists(size):
        some_rows.add(size, first, counts)
        waiting += sum(counts)
        if waiting >= PLAYS_A_UNIT:
            store.write(some_rows.write).result()
            some_rows, waiting = _Rows(), 0
    store.write(some_rows.write).result()


def _people() -> tuple[int, str]:
    user = users.create(MANAGER, api_access=True, now=NOW)
    return user.id, tokens.create(user, "benchmark", now=NOW)[1]


def _catalog(size: Size, manager: int) -> None:
    artists, albums = -(-size.tracks // TRACKS_AN_ARTIST), -(-size.tracks // TRACKS_AN_ALBUM)
    per_artist = TRACKS_AN_ARTIST // TRACKS_AN_ALBUM
    rows: dict[Any, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
        Artist: (("id", "name", "manager", "created_at"), [(n, f"Artist {n}", manager, NOW) for n in _ids(artists)]),
        Album: (("id", "name", "created_at"), [(n, f"Album {n}", NOW) for n in _ids(albums)]),
        AlbumArtist: (
            ("album", "artist", "position"),
            [(n, 1 + (n - 1) // per_artist, 0) for n in _ids(albums)],
        ),
        Track: (
            ("id", "name", "duration", "album", "plays", "created_at"),
            [
                (n, f"Track {n}", 200_000, 1 + (n - 1) // TRACKS_AN_ALBUM, plays, NOW)
                for n, plays in enumerate(_counts(size), 1)
            ],
        ),
        TrackArtist: (
            ("track", "artist", "position"),
            [(n, 1 + (n - 1) // TRACKS_AN_ARTIST, 0) for n in _ids(size.tracks)],
        ),
    }
    for table, (fields, values) in rows.items():
        bulk.insert(table, fields, values)


def _ids(count: int) -> range:
    return range(1, count + 1)


def _counts(size: Size) -> Iterator[int]:
    """The plays of each track: the n-th of 1/n, all of them together as many as are wanted."""
    sums = [0.0]
    for rank in _ids(size.tracks):
        sums.append(sums[-1] + 1 / rank)
    ends = [floor(size.plays * part / sums[-1] + 1e-6) for part in sums]
    return (after - before for before, after in pairwise(ends))


def _artists(size: Size) -> Iterator[tuple[int, list[int]]]:
    """(first track, the plays of each of its tracks) of each artist."""
    counts = list(_counts(size))
    for start in range(0, size.tracks, TRACKS_AN_ARTIST):
        yield start + 1, counts[start : start + TRACKS_AN_ARTIST]


class _Rows:
    """The rows of some artists' plays, to be written in one unit."""

    def __init__(self) -> None:
        self.plays: list[tuple[Any, ...]] = []
        self.days: list[tuple[Any, ...]] = []
        self.totals: list[tuple[Any, ...]] = []

    def add(self, size: Size, first: int, counts: list[int]) -> None:
        """The plays of one artist's tracks, and what they are counted in."""
        artist: Sets = defaultdict(list)
        album: Sets = defaultdict(list)
        for track, count in enumerate(counts, first):
            own = self._track(size, track, count)
            for day, some in own.items():
                artist[day] += some
                album[day] += some
            self._count(TRACK, track, own)
            if track % TRACKS_AN_ALBUM == 0 or track == first + len(counts) - 1:
                self._count(ALBUM, 1 + (track - 1) // TRACKS_AN_ALBUM, album)
                album = defaultdict(list)
        self._count(ARTIST, 1 + (first - 1) // TRACKS_AN_ARTIST, artist)

    def _track(self, size: Size, track: int, count: int) -> Sets:
        """Take up so many plays of a track at random; its listeners by day."""
        chance = random.Random(track).random  # noqa: S311 - times and listeners, no secrets
        combinations = size.days * SLOTS_A_DAY * size.listeners
        drawn: set[int] = set()
        while len(drawn) < count:
            drawn.update(int(chance() * combinations) for _ in range(count - len(drawn)))
        days: Sets = defaultdict(list)
        start = size.first_day * SLOTS_A_DAY
        for number in sorted(drawn):
            at, who = divmod(number, size.listeners)
            slot, listener = start + at, who + 1
            self.plays.append((track, slot, listener, WITHOUT_ID, slot * SLOT, None, 0))
            days[slot // SLOTS_A_DAY].append(listener)
        return days

    def _count(self, kind: int, subject: int, days: Sets) -> None:
        packed = {day: listeners.pack(some) for day, some in days.items()}
        self.days += ((kind, subject, day, len(days[day]), packed[day]) for day in sorted(days))
        if days:
            everybody = listeners.pack(listeners.union(packed.values()))
            self.totals.append((kind, subject, sum(map(len, days.values())), everybody))

    def write(self) -> None:
        """Write them; the plays stand in the order of their key already."""
        columns = ("track", "slot", "listener", "client_key", "played_at", "duration_ms", "reporter")
        bulk.insert(Play, columns, self.plays)
        bulk.insert(PlayDay, ("kind", "subject", "day", "plays", "listeners"), sorted(self.days))
        bulk.insert(PlayTotal, ("kind", "subject", "plays", "listeners"), sorted(self.totals))


def _units(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    some: list[tuple[Any, ...]] = []
    for row in rows:
        some.append(row)
        if len(some) == ROWS_A_UNIT:
            yield some
            some = []
    yield some
