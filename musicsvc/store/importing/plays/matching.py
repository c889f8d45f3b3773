"""Find the track that a row of plays or of playlists names, by id, ISRC or names.

Names are compared by their keys, those written exactly so are preferred, then those with the same case. A track or
artist also has the names and codes of what was merged into it.
"""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.store import models
from musicsvc.store.catalog import tracks
from musicsvc.store.catalog.merged import ARTIST, TRACK
from musicsvc.store.engine.name_keys import caseless_key, closest, name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.cells.names import JOINT
from musicsvc.store.importing.plays.listen_rows import MOST_KNOWN, Listen, Named
from musicsvc.store.importing.runner import RefusedError
from musicsvc.store.models import Album, Merged, MergedCredit, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID

AMBIGUOUS = 0  # never the id of a track
MAX_IN_MEMORY = 100_000
SEEN = "CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID"
ADD = "INSERT OR IGNORE INTO seen VALUES (?)"
HAS = "SELECT 1 FROM seen WHERE key = ?"
NO_ID = "no track has this track_id"
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_ISRC = "no track has this ISRC; import the catalog first"
SEVERAL = "several tracks differ only in case; write one exactly, or name it by an id"


class Artist(NamedTuple):
    id: int
    name: str
    manager: int | None


class Track(NamedTuple):
    """A track of the catalog. `credits` is the number of its artists."""

    id: int
    name: str
    album: str | None
    credits: int


Code = tuple[str, str | None]  # "id" and an external id, or "isrc" and an ISRC
Tracks = dict[int, dict[str, list[Track]]]  # by artist, then by case-folded name


@dataclass(slots=True)
class CatalogIndex:
    """All artists of the catalog by case-folded name, and the tracks of the artists that earlier batches named.

    `found`: the tracks that earlier rows named by artists and track. What is created later does not change them: a
    track is created only if none is alike.
    """

    manager: int | None  # the account whose artists and tracks are preferred
    artists: dict[str, list[Artist]] = field(default_factory=lambda: defaultdict(list))  # by case-folded name
    tracks: Tracks = field(default_factory=dict)
    found: dict[Named, int] = field(default_factory=dict)
    loaded: tuple[int, int] = 0, 0  # the highest ids of artists and tracks at first
    newest: tuple[int, int] = 0, 0  # those that it has now
    _later: list[Artist] = field(default_factory=list)  # created since, by this import or otherwise

    def add(self, artists: Iterable[Artist]) -> None:
        for artist in artists:
            self.artists[caseless_key(artist.name)].append(artist)

    def named(self, rows: Iterable[Named]) -> set[int]:
        """Return the ids of the artists that rows may name."""
        names = {name for row in rows if row.track_id is None for name in row.artists}
        return {artist.id for name in names for artist in self.artists.get(caseless_key(name), ())}

    def add_track(self, track: Track, artists: Iterable[int]) -> None:
        for artist in artists:
            self.tracks.setdefault(artist, {}).setdefault(caseless_key(track.name), []).append(track)

    def refresh(self) -> None:
        """Add the artists and tracks that were created since. Call it in the transaction of each batch."""
        ((artist, track),) = _newest()
        if artist > self.newest[0]:
            later = [Artist(*row) for row in _artists(self.newest[0])]
            self.add(later)
            self._later += later
        if track > self.newest[1] and self.tracks:
            for by, *values in _later_tracks(self.newest[1]):
                if by in self.tracks:
                    self.add_track(Track(*values), [by])
        self.newest = artist, track

    def forget_later(self) -> None:
        """Forget the artists that were created later, and the tracks of all artists, which the next batches load."""
        for artist in self._later:
            self.artists[caseless_key(artist.name)].remove(artist)
        self._later.clear()
        self.newest = self.loaded
        self.forget_tracks()

    def forget_tracks(self) -> None:
        self.tracks.clear()
        self.found.clear()

    def remember(self, found: Mapping[Named, int | None]) -> None:
        """Remember what was found for rows by names alone."""
        if len(self.found) > MOST_KNOWN:
            self.found.clear()
        by_names = (row for row in found if row.track_id is None and not (row.external_ids or row.isrc))
        self.found |= {row: track for row in by_names if (track := found[row])}


def load(manager: int | None) -> CatalogIndex:
    """Return an index with all artists and no tracks. Call in a transaction."""
    catalog = CatalogIndex(manager)
    (catalog.loaded,) = _newest()
    catalog.newest = catalog.loaded
    catalog.add(Artist(*row) for row in _artists(0))
    return catalog


class TrackLookup:
    """Finds the tracks that a batch names. The caller must add artists and tracks that it creates to `created`."""

    def __init__(self, rows: Collection[Named], catalog: CatalogIndex) -> None:
        """Load the tracks that the rows may name. Call in a transaction."""
        self.created = CatalogIndex(catalog.manager)
        self._catalog = catalog
        self.found: dict[Named, int | None] = {}  # what `find` returned
        ids = {each.track_id for each in rows if each.track_id is not None}
        self._ids = ids - tracks.missing(ids)
        external_ids = {each for row in rows for each in row.external_ids}
        self._same_id = _by_code(_by_external_id, external_ids, catalog.manager)
        self._same_isrc = _by_code(_by_isrc, {each.isrc for each in rows if each.isrc}, catalog.manager)
        self._by_code: dict[Code, int] = {("id", code): found[0] for code, found in self._same_id.items()}
        self._by_code |= {("isrc", code): found[0] for code, found in self._same_isrc.items()}
        artists = catalog.named(rows) - catalog.tracks.keys()
        self.fresh: Tracks = {artist: {} for artist in artists}
        for artist, *values in _by_artists(artists) if artists else ():
            track = Track(*values)
            self.fresh[artist].setdefault(caseless_key(track.name), []).append(track)

    def find(self, named: Named) -> int | None:
        """Return the id of the track, None if no track matches, AMBIGUOUS if several differ only in case."""
        return self.found[named] if named in self.found else self.found.setdefault(named, self._find(named))

    def _find(self, named: Named) -> int | None:
        if named.track_id is not None:
            return named.track_id if named.track_id in self._ids else None
        codes = [*(("id", each) for each in named.external_ids), ("isrc", named.isrc)]
        for code in reversed(codes) if named.isrc_first else codes:
            if code in self._by_code:
                return self._by_code[code]
        if named.track is None or not named.artists:
            return None
        found = self._candidates(named)
        return _choose(found, named, self.created.manager) if found else None

    def alike(self, named: Named) -> set[int]:
        """Return the ids of all tracks that match the row's ids or names, regardless of their manager."""
        found = {track for each in named.external_ids for track in self._same_id.get(each, ())}
        found.update(self._same_isrc.get(named.isrc or "", ()))
        if named.track is not None and named.artists:
            found |= {track.id for track, _ in _exact(self._candidates(named), named) or self._candidates(named)}
        return found

    def add_codes(self, track: int, *codes: Code) -> None:
        """Let later rows of the batch find a created track, also by its external id and ISRC, if it has them."""
        self.found.clear()
        self._by_code |= {code: track for code in codes if code[1] is not None}

    def ambiguous_ids(self, named: Named) -> list[int]:
        """Return the ids of all matching tracks if `find` returns AMBIGUOUS, otherwise an empty list."""
        return sorted(track.id for track, _ in self._candidates(named)) if self.find(named) == AMBIGUOUS else []

    def managed(self, name: str) -> Artist | None:
        """Return the manager's artist with this name or, if only one has it in other case, that artist. Else None."""
        mine = [artist for artist in self._alike(name) if artist.manager == self.created.manager]
        exact = closest(mine, lambda artist: (artist.name,), (name,))
        return min(exact) if exact else mine[0] if len({artist.id for artist in mine}) == 1 else None

    def _alike(self, name: str) -> list[Artist]:
        key = caseless_key(name)
        return [*self._catalog.artists.get(key, ()), *self.created.artists.get(key, ())]

    def _named(self, artist: int, key: str) -> list[Track]:
        known = self.fresh.get(artist) or self._catalog.tracks.get(artist) or {}
        return [*known.get(key, ()), *self.created.tracks.get(artist, {}).get(key, ())]

    def _candidates(self, named: Named) -> Collection[tuple[Track, Artist]]:
        """Return the tracks by all artists of the row or, if there are none, by its first artist, ignoring case.

        The result has pairs of a track and its artist that matches the first artist of the row.
        """
        artists = [self._alike(name) for name in named.artists]
        key = caseless_key(named.track or "")
        first = {track.id: (track, by) for by in artists[0] for track in self._named(by.id, key)}
        found = first
        for others in artists[1:]:
            theirs = {track.id for by in others for track in self._named(by.id, key)}
            found = {track: both for track, both in found.items() if track in theirs}
        return (found or first).values()


def _choose(found: Collection[tuple[Track, Artist]], named: Named, manager: int | None) -> int:
    exact = _exact(found, named)
    if not exact and len({(name_key(artist.name), name_key(track.name)) for track, artist in found}) > 1:
        return AMBIGUOUS
    album = None if named.album is None else caseless_key(named.album)
    ranks = [
        (
            track.credits != len(named.artists),
            album is None or track.album is None or caseless_key(track.album) != album,
            artist.manager != manager,
            track.id,
        )
        for track, artist in exact or found
    ]
    return min(ranks)[-1]


def _exact(found: Collection[tuple[Track, Artist]], named: Named) -> list[tuple[Track, Artist]]:
    """Return the candidates in `found` whose track name and first artist are those of the row."""
    return closest(found, lambda pair: (pair[1].name, pair[0].name), (named.artists[0], named.track or ""))


def _by_code(find: Callable[[Any], list[Any]], codes: Collection[str], manager: int | None) -> dict[str, list[int]]:
    """Return lists of track ids by external id or ISRC: the manager's tracks first, then tracks without manager."""
    ranks: dict[str, list[tuple[bool, bool, int]]] = defaultdict(list)
    for code, track, owner in find(codes) if codes else ():
        ranks[code].append((owner != (manager or 0), owner != 0, track))
    return {code: [rank[2] for rank in sorted(some)] for code, some in ranks.items()}


@compiled
def _by_external_id(codes: Collection[str]) -> Any:
    track = models.Track
    own = track.select(track.external_id, track.id, track.imported_for).where(track.external_id.in_(codes))
    former = Merged.select(Merged.external_id, Merged.into, Merged.imported_for)
    return own.union_all(former.where(Merged.kind == TRACK, Merged.external_id.in_(codes)))


@compiled
def _by_isrc(codes: Collection[str]) -> Any:
    own = models.Track.select(models.Track.isrc.alias("code"), models.Track.id.alias("track"))
    former = Merged.select(Merged.code, Merged.into).where(Merged.kind == TRACK, Merged.code.in_(codes))
    coded = own.where(models.Track.isrc.in_(codes)).union_all(former).alias("coded")
    credit = coded.select_from(coded.c.code, coded.c.track, fn.coalesce(models.Artist.manager, 0))
    return credit.join(TrackArtist, on=TrackArtist.track == coded.c.track).join(
        models.Artist, on=models.Artist.id == TrackArtist.artist
    )


@compiled
def _artists(after: int) -> Any:
    """Select the artists with ids above `after`, also under former names."""
    artist = models.Artist
    former = Merged.select(artist.id, Merged.name, artist.manager).join(artist, on=artist.id == Merged.into)
    former = former.where(Merged.kind == ARTIST, Merged.former > 0, artist.id > after)
    return former.union_all(artist.select(artist.id, artist.name, artist.manager).where(artist.id > after))


@compiled
def _newest() -> Any:
    """Select the highest ids of artists and tracks."""
    track = models.Track.select(fn.coalesce(fn.max(models.Track.id), 0))
    return models.Artist.select(fn.coalesce(fn.max(models.Artist.id), 0), track)


@compiled
def _by_artists(artists: Collection[int]) -> Any:
    """Select artist and id, name, album and number of artists of the tracks of artists, also under former names."""
    former = MergedCredit.alias()
    former_size = former.select(fn.count(SQL("*"))).where(former.merged == Merged.id)
    merged = MergedCredit.select(MergedCredit.artist, Merged.into, Merged.name, Album.name, former_size).join(Merged)
    of_merged = merged.join(Album, "LEFT JOIN", on=Album.id == Merged.album).where(Merged.kind == TRACK)
    own = _credits().where(TrackArtist.artist.in_(artists))
    return own.union_all(of_merged.where(MergedCredit.artist.in_(artists)))


@compiled
def _later_tracks(after: int) -> Any:
    """Select the same of the tracks with ids above `after`."""
    return _credits().where(TrackArtist.track > after)


def _credits() -> Any:
    track, other = models.Track, TrackArtist.alias()
    size = other.select(fn.count(SQL("*"))).where(other.track == track.id)
    own = TrackArtist.select(TrackArtist.artist, track.id, track.name, Album.name, size).join(track)
    return own.join(Album, "LEFT JOIN")


def unknown(named: Named, missing: str, several: Sequence[int] = ()) -> RefusedError:
    """Return why a row is refused whose track was not found.

    `missing`: the reason if no track has its names. `several`: ids of matches that differ only in case.
    """
    if named.track_id is not None:
        return RefusedError(NO_ID, names=(str(named.track_id),))
    if named.track is None or not named.artists:
        if named.external_ids:
            return RefusedError(NO_EXTERNAL_ID, names=tuple(map(repr, named.external_ids)))
        return RefusedError(NO_ISRC, names=(str(named.isrc),))
    called = f"{named.track!r} by {', '.join(named.artists)}"
    if several:
        return RefusedError(SEVERAL, names=(f"{called} (track_id {' or '.join(map(str, several))})",))
    return RefusedError(missing, names=(called,))


def hashes(listen: Listen) -> tuple[int | None, ...]:
    """Return 63-bit hashes of the row's client_id and its track's names or codes, or None twice if it has a track_id.

    The first is that of the names' keys, as it is stored, the second that of the names as written, as in plays that
    programs of 0.1.0 stored. A third one of several artists: that of them as one, joined by commas.
    """
    named = listen.named
    if listen.client_id is not None:
        return _hashes(named, (listen.client_id, listen.played_at))
    if named.hashes is None:
        named.hashes = _hashes(named, None)
    return named.hashes


def _hashes(named: Named, when: tuple[str, int] | None) -> tuple[int | None, ...]:
    if named.track_id is not None:
        return None, None
    artists = named.written or named.artists
    if not (artists and named.track):
        return (found := digest(((named.external_ids, named.isrc), when))), found
    written = artists, named.track
    keys = tuple(map(name_key, artists)), name_key(named.track)
    found = digest((keys, when))
    joined = [digest((((JOINT.join(keys[0]),), keys[1]), when))] * (len(artists) > 1)
    return found, found if keys == written else digest((written, when)), *joined


def digest(values: tuple[object, ...]) -> int:
    """Return a 63-bit hash of texts and numbers."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=8).digest()) >> 1


def stored_hash(listen: Listen) -> int | None:
    """Return the hash to store with the row's play. It is negative if the row's time is cut to the minute."""
    names = hashes(listen)[0]
    return ~(names or 0) if listen.to_minute else names


def hash_of(stored: int | None) -> int | None:
    """Return the hash of names of a play, given the one that is stored with it: another if its time is cut."""
    return stored if stored is None or stored >= 0 else ~stored


def client_key(listen: Listen, track: int, listener: int) -> bytes:
    """Return the key that is stored with the row's play of this track: a hash of client_id, listener, track and time.

    A client_id is unique only in its file, so the client_id alone does not identify a play. `listener`: the id of the
    row's listener. Its name is not hashed, as nobody must find an erased listener by a guessed name.
    """
    if listen.client_id is None:
        return WITHOUT_ID
    return ingest.client_key("import", repr((track, listen.played_at, listener, listen.client_id)))


class SeenIds:
    """The client_ids of a file. More than MAX_IN_MEMORY of them are stored in a temporary SQLite database."""

    def __init__(self) -> None:
        self._in_memory: set[bytes] = set()
        self._moved = False
        # Transactions use it from different threads of the store, but never at the same time.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)

    def has(self, client_id: str) -> bool:
        key = _hash(client_id)
        return key in self._in_memory or (self._moved and self._database.execute(HAS, (key,)).fetchone() is not None)

    def add(self, client_ids: Iterable[str]) -> None:
        self._in_memory.update(map(_hash, client_ids))
        if len(self._in_memory) > MAX_IN_MEMORY:
            if not self._moved:
                self._database.executescript(f"PRAGMA journal_mode = OFF; {SEEN}; BEGIN")
                self._moved = True
            self._database.executemany(ADD, ((key,) for key in sorted(self._in_memory)))
            self._in_memory.clear()

    def close(self) -> None:
        self._database.close()


def _hash(client_id: str) -> bytes:
    return hashlib.blake2b(client_id.encode(), digest_size=16).digest()
