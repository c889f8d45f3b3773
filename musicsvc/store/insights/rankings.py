"""Rank tracks, albums and artists by plays, such as the tracks of an album or the albums of an artist."""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.engine.sql import batches, compiled
from musicsvc.store.insights import belonging
from musicsvc.store.models import DeletedTrack, Track, TrackArtist
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import NO_PLAYS, Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

TOP = 10
SUBJECTS_PER_BATCH = 2000
FIRST_READ = 16  # subjects


class OfArtist(NamedTuple):
    """Plays of an artist's tracks on an album, of all time and in the window."""

    total: int
    period: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A track or album in a ranking, with all-time plays (`plays_total`), and plays and listeners in the window.

    `of_artist`: which of the plays are of the artist whose album it is in the ranking.
    """

    id: int
    name: str
    plays_total: int
    plays: int
    listeners: int
    of_artist: OfArtist | None = None


class Counted:
    """Counts the plays of tracks, albums or artists."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def ever(self, ids: Collection[int]) -> dict[int, int]:
        """Return the all-time plays by id."""
        return all_time_plays(self._kind, ids)

    def plays(self, ids: Collection[int], reader: Reader) -> Mapping[int, int]:
        """Return the plays in the windows of `reader` by id."""
        return reader.plays(self._kind, ids)

    def parts(self, ids: Collection[int], reader: Reader) -> dict[int, OfArtist]:  # noqa: ARG002 - for artists
        """Return what of the plays is counted, by id. Empty if all plays are."""
        return {}


class CountedOfArtist(Counted):
    """Counts of albums the plays of an artist's tracks on them, deleted ones included.

    Of an album with no other tracks these are the plays of the album; else the plays of the tracks are added up.
    """

    def __init__(self, artist: int, albums: Collection[int]) -> None:
        super().__init__(ALBUM)
        self._tracks: dict[int, list[int]] = {each: [] for (each,) in _with_others(artist, albums)} if albums else {}
        for album, track in _on_albums(artist, [*self._tracks]) if self._tracks else ():
            self._tracks[album].append(track)

    def ever(self, ids: Collection[int]) -> dict[int, int]:
        return super().ever(self._whole(ids)) | self._added(ids, all_time_plays)

    def plays(self, ids: Collection[int], reader: Reader) -> dict[int, int]:
        return {**super().plays(self._whole(ids), reader), **self._added(ids, reader.plays)}

    def parts(self, ids: Collection[int], reader: Reader) -> dict[int, OfArtist]:
        ever, plays = self.ever(ids), self.plays(ids, reader)
        return {each: OfArtist(ever.get(each, 0), plays.get(each, 0)) for each in ids}

    def _whole(self, albums: Collection[int]) -> list[int]:
        return [each for each in albums if each not in self._tracks]

    def _added(self, albums: Collection[int], count: Callable[[int, list[int]], Mapping[int, int]]) -> dict[int, int]:
        """Return the sums of the tracks' plays, by album, of those with other tracks."""
        some = {each: self._tracks[each] for each in albums if each in self._tracks}
        tracks = [track for on in some.values() for track in on]
        found = count(TRACK, tracks) if tracks else {}
        sums = {each: sum(found.get(track, 0) for track in on) for each, on in some.items()}
        return {each: plays for each, plays in sums.items() if plays}


@compiled
def _with_others(artist: int, albums: Collection[int]) -> Any:
    """Select those of the albums that have tracks without the artist."""
    own = TrackArtist.select(TrackArtist.track).where(TrackArtist.track == Track.id, TrackArtist.artist == artist)
    kept = Track.select(Track.album).where(Track.album.in_(albums), ~fn.EXISTS(own))
    by = DeletedTrack.alias()
    of = by.select(by.track).where(by.kind == ARTIST, by.subject == artist, by.track == DeletedTrack.track)
    gone = DeletedTrack.select(DeletedTrack.subject).where(
        DeletedTrack.kind == ALBUM, DeletedTrack.subject.in_(albums), ~fn.EXISTS(of)
    )
    return kept.union(gone)


@compiled
def _on_albums(artist: int, albums: Collection[int]) -> Any:
    """Select the artist's tracks on these albums, each after its album."""
    query = Track.select(Track.album, Track.id).join(TrackArtist, on=(TrackArtist.track == Track.id))
    kept = query.where(TrackArtist.artist == artist, Track.album.in_(albums))
    on = DeletedTrack.alias()
    gone = DeletedTrack.select(on.subject, on.track).join(on, on=(on.track == DeletedTrack.track))
    of_both = (DeletedTrack.kind == ARTIST) & (DeletedTrack.subject == artist) & (on.kind == ALBUM)
    return kept.union_all(gone.where(of_both, on.subject.in_(albums)))


def tracks_of_album(album_id: int, window: Window) -> list[Ranked]:
    """Return all tracks of the album, most played in the window first."""
    return _ranked(TRACK, Subject(ALBUM, album_id), window)


def tracks_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten most played tracks in the window."""
    return _ranked(TRACK, Subject(ARTIST, artist_id), window, TOP)


def albums_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten albums with the most plays of its own tracks in the window."""
    return _ranked(ALBUM, Subject(ARTIST, artist_id), window, TOP)


def most_played(kind: int, ids: Iterable[int], window: Window, count: int, counted: Counted | None = None) -> list[int]:
    """Return the ids of the tracks, albums or artists with the most plays in the window, most plays first.

    `counted` counts the plays: by default all.
    """
    counted = counted or Counted(kind)
    reader = Reader(window, all_time=False)
    best: list[tuple[int, int, int]] = []
    for batch in batches(ids, SUBJECTS_PER_BATCH):
        ever = counted.ever(batch)
        plays = _plays(counted, ever, reader, count, least=best[-1][0] if len(best) == count else 0)
        best = heapq.nlargest(count, [*best, *((plays[each], ever[each], each) for each in plays)])
    return [each for plays, _, each in best if plays]


def _ranked(kind: int, owner: Subject, window: Window, top: int | None = None) -> list[Ranked]:
    names = dict(_members(owner.id, kind=owner.kind, of=kind))
    counted = CountedOfArtist(owner.id, names) if (owner.kind, kind) == (ARTIST, ALBUM) else Counted(kind)
    ever = counted.ever(names)
    reader = Reader(window, all_time=False)
    plays = _plays(counted, ever, reader, top or len(names))
    order = sorted(names, key=lambda each: (-plays.get(each, 0), -ever.get(each, 0), -each))[:top]
    # Listener sets are slow to read, so only those of returned rows are read.
    whole, parts = all_time_plays(kind, order), counted.parts(order, reader)
    stats = reader.read(kind, [each for each in order if kind == ALBUM or plays.get(each)])
    shown = {each: stats.get(each, [NO_PLAYS])[0] for each in order}
    return [
        Ranked(each, names[each], whole.get(each, 0), some.plays, len(some.listeners), parts.get(each))
        for each, some in shown.items()
    ]


@compiled
def _members(owner: int, *, kind: int, of: int) -> Any:
    row = belonging.ROWS[of]
    return row.select(row.id, row.name).where(row.id.in_(belonging.members(owner, kind, of)))


def _plays(counted: Counted, ever: Mapping[int, int], reader: Reader, count: int, least: int = 0) -> dict[int, int]:
    """Return the plays in the window, by id, of all ids that may be among the `count` most played ones.

    `ever` has all-time plays by id. Ids with fewer than `least` all-time plays, or with too few to rank, are skipped.
    """
    order = sorted(ever, key=ever.__getitem__, reverse=True)
    found: dict[int, int] = {}
    first = max(count, FIRST_READ)
    for some in (order[:first], order[first:]):
        enough = [each for each in some if ever[each] >= least]
        if enough:
            plays = counted.plays(enough, reader)
            found |= {each: plays.get(each, 0) for each in enough}
        if 0 < count <= len(found):
            least = max(least, heapq.nlargest(count, found.values())[-1])
    return found
