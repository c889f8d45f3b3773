"""Rank tracks, albums and artists by plays, such as the tracks of an album or the albums of an artist."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import belonging, scopes
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import NO_PLAYS, Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

TOP = 10
SUBJECTS_PER_BATCH = 2000
FIRST_READ = 16  # subjects


@dataclass(frozen=True, slots=True)
class Ranked:
    """A track or album in a ranking, with all-time plays (`plays_total`), and plays and listeners in the window."""

    id: int
    name: str
    plays_total: int
    plays: int
    listeners: int


def tracks_of_album(album_id: int, window: Window) -> list[Ranked]:
    """Return all tracks of the album, most played in the window first."""
    return _ranked(TRACK, Subject(ALBUM, album_id), window)


def tracks_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten most played tracks in the window."""
    return _ranked(TRACK, Subject(ARTIST, artist_id), window, TOP)


def albums_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten most played albums in the window."""
    return _ranked(ALBUM, Subject(ARTIST, artist_id), window, TOP)


def most_played(kind: int, ids: Iterable[int], window: Window, count: int) -> list[int]:
    """Return the ids of the tracks, albums or artists with the most plays in the window, most plays first."""
    reader = Reader(window, all_time=False)
    best: list[tuple[int, int, int]] = []
    for batch in scopes.batches(ids, SUBJECTS_PER_BATCH):
        ever = all_time_plays(kind, batch)
        plays = _plays(kind, ever, reader, count, least=best[-1][0] if len(best) == count else 0)
        best = heapq.nlargest(count, [*best, *((plays[each], ever[each], each) for each in plays)])
    return [each for plays, _, each in best if plays]


def _ranked(kind: int, owner: Subject, window: Window, top: int | None = None) -> list[Ranked]:
    names = dict(_members(owner.id, kind=owner.kind, of=kind))
    ever = all_time_plays(kind, names)
    reader = Reader(window, all_time=False)
    plays = _plays(kind, ever, reader, top or len(names))
    order = sorted(names, key=lambda each: (-plays.get(each, 0), -ever.get(each, 0), -each))[:top]
    # Listener sets are slow to read, so only those of returned rows are read.
    stats = reader.read(kind, [each for each in order if plays.get(each)])
    shown = {each: stats.get(each, [NO_PLAYS])[0] for each in order}
    return [
        Ranked(each, names[each], ever.get(each, 0), some.plays, len(some.listeners)) for each, some in shown.items()
    ]


@compiled
def _members(owner: int, *, kind: int, of: int) -> Any:
    row = belonging.ROWS[of]
    return row.select(row.id, row.name).where(row.id.in_(belonging.members(owner, kind, of)))


def _plays(kind: int, ever: Mapping[int, int], reader: Reader, count: int, least: int = 0) -> dict[int, int]:
    """Return the plays in the window, by id, of all ids that may be among the `count` most played ones.

    `ever` has all-time plays by id. Ids with fewer than `least` all-time plays, or with too few to rank, are skipped.
    """
    order = sorted(ever, key=ever.__getitem__, reverse=True)
    found: dict[int, int] = {}
    first = max(count, FIRST_READ)
    for some in (order[:first], order[first:]):
        enough = [each for each in some if ever[each] >= least]
        if enough:
            plays = reader.plays(kind, enough)
            found |= {each: plays.get(each, 0) for each in enough}
        if 0 < count <= len(found):
            least = max(least, heapq.nlargest(count, found.values())[-1])
    return found
