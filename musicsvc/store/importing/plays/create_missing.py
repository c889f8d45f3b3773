"""Create the artists and tracks that an imported listening history names and the catalog lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from musicsvc.store.engine import bulk
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import Artist, CatalogIndex, Track, TrackLookup
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist as ArtistTable
from musicsvc.store.models import Track as TrackTable
from musicsvc.store.models import TrackArtist


@dataclass(frozen=True, slots=True)
class CreationScope:
    """The manager and creation time of new artists and tracks. In a dry run, `ids` yields negative ids for them."""

    manager: int | None
    now: int
    ids: Iterator[int] | None = None


class CreatedTrack(NamedTuple):
    """A track that an import creates, with the ids of its artists, its id in another service and its ISRC."""

    track: Track
    artists: tuple[int, ...]
    external_id: str | None
    isrc: str | None


class MissingCreator:
    """Collects the artists and tracks that a batch of plays names and the catalog lacks, to insert them together."""

    def __init__(self, lookup: TrackLookup, scope: CreationScope, listens: Sequence[Listen]) -> None:
        self.artists: list[Artist] = []
        self.tracks: list[CreatedTrack] = []
        self._lookup = lookup
        self._scope = scope
        self._most: dict[type[ArtistTable | TrackTable], int] = {
            TrackTable: len(listens),
            ArtistTable: sum(len(listen.artists) for listen in listens),
        }
        self._ids: dict[type[ArtistTable | TrackTable], Iterator[int]] = {}

    def create(self, listen: Listen) -> int:
        """Add the track of a play, and its artists that do not exist, to the collection. Return the track's id."""
        credit = tuple(dict.fromkeys(self._artist(name) for name in listen.artists))
        external_id = next(iter(listen.external_ids), None)
        track = Track(self._id(TrackTable), listen.track or "", None, len(credit))
        self.tracks.append(CreatedTrack(track, credit, external_id, listen.isrc))
        self._lookup.created.add_track(track, credit)
        if external_id is not None:
            self._lookup.created.external[external_id] = track.id
        if listen.isrc is not None:
            self._lookup.created.isrcs[listen.isrc] = track.id
        return track.id

    def _artist(self, name: str) -> int:
        known = self._lookup.managed(name)
        if known is not None:
            return known.id
        artist = Artist(self._id(ArtistTable), name, self._scope.manager)
        self.artists.append(artist)
        self._lookup.created.add([artist])
        return artist.id

    def _id(self, table: type[ArtistTable | TrackTable]) -> int:
        if self._scope.ids is not None:
            return next(self._scope.ids)
        if table not in self._ids:
            self._ids[table] = iter(bulk.ids(table, self._most[table]))
        return next(self._ids[table])

    def write(self, run: int) -> None:
        """Insert the collected artists and tracks, and record that the import `run` created them."""
        if self._scope.ids is not None:
            return
        manager, now = self._scope.manager, self._scope.now
        artists = [(artist.id, artist.name, manager, now) for artist in self.artists]
        bulk.insert(ArtistTable, ("id", "name", "manager", "created_at"), artists)
        fields = ("id", "name", "duration", "external_id", "isrc", "imported_for", "created_at")
        tracks = [(t.track.id, t.track.name, 0, t.external_id, t.isrc, manager or 0, now) for t in self.tracks]
        bulk.insert(TrackTable, fields, tracks)
        links = [(t.track.id, artist, at) for t in self.tracks for at, artist in enumerate(t.artists)]
        bulk.insert(TrackArtist, ("track", "artist", "position"), links)
        runs.made(run, ArtistTable, [artist.id for artist in self.artists])
        runs.made(run, TrackTable, [created.track.id for created in self.tracks])

    def add_to(self, catalog: CatalogIndex) -> None:
        """Add the collected artists and tracks to the index, so that later batches find them."""
        catalog.add(self.artists)
        for track, artists, external_id, isrc in self.tracks:
            catalog.add_track(track, artists)
            if external_id is not None and self._scope.ids is not None:
                catalog.external[external_id] = track.id
            if isrc is not None and self._scope.ids is not None:
                catalog.isrcs[isrc] = track.id


def dry_run_ids() -> Iterator[int]:
    """Yield negative ids for artists and tracks that a dry run does not write."""
    return count(-1, -1)
