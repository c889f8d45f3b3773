"""Create the artists and tracks that an imported listening history names and the catalog lacks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from musicsvc.store.engine import bulk
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import Artist, CatalogIndex, Track, TrackLookup
from musicsvc.store.importing.runner import Scope
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist as ArtistTable
from musicsvc.store.models import Track as TrackTable
from musicsvc.store.models import TrackArtist


class CreatedTrack(NamedTuple):
    """A track that an import creates, with the ids of its artists, its id in another service and its ISRC."""

    track: Track
    artists: tuple[int, ...]
    external_id: str | None
    isrc: str | None


class MissingCreator:
    """Collects the artists and tracks that a batch of plays names and the catalog lacks, to insert them together."""

    def __init__(self, lookup: TrackLookup, scope: Scope, listens: Sequence[Listen]) -> None:
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
        self._lookup.add_codes(track.id, ("id", external_id), ("isrc", listen.isrc))
        return track.id

    def _artist(self, name: str) -> int:
        known = self._lookup.managed(name)
        if known is not None:
            return known.id
        artist = Artist(self._id(ArtistTable), name, self._scope.user)
        self.artists.append(artist)
        self._lookup.created.add([artist])
        return artist.id

    def _id(self, table: type[ArtistTable | TrackTable]) -> int:
        if table not in self._ids:
            self._ids[table] = iter(bulk.ids(table, self._most[table]))
        return next(self._ids[table])

    def write(self) -> None:
        """Insert the collected artists and tracks, and record that the import created them."""
        manager, now, run = self._scope.user, self._scope.now, self._scope.run
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
        catalog.tracks |= self._lookup.fresh
        catalog.add_created(self.artists)
        for created in self.tracks:
            catalog.add_track(created.track, created.artists)
