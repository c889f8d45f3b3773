"""Find the tracks of plays in a listening history, by id, ISRC or names. Names with the same case are preferred."""

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.importing.plays.listen_rows import Listen

TRACKS = "SELECT id FROM track WHERE id {among}"
# A track or artist also has the names and codes of what was merged into it.
EXTERNAL = """
    SELECT external_id, id, imported_for FROM track WHERE external_id {among}
    UNION ALL SELECT external_id, into_id, imported_for FROM merged WHERE kind = 1 AND external_id {among}
"""
ISRC = """
    SELECT t.isrc, t.id, coalesce(a.manager_id, 0) FROM (
        SELECT isrc, id FROM track WHERE isrc {among}
        UNION ALL SELECT code, into_id FROM merged WHERE kind = 1 AND code {among}
    ) AS t JOIN track_artist l ON l.track_id = t.id JOIN artist a ON a.id = l.artist_id
"""
ARTISTS = """
    SELECT a.id, m.name, a.manager_id FROM merged m JOIN artist a ON a.id = m.into_id WHERE m.kind = 3
    UNION ALL SELECT id, name, manager_id FROM artist
"""
OF_ARTISTS = """
    SELECT l.artist_id, t.id, t.name, a.name, (SELECT count(*) FROM track_artist o WHERE o.track_id = t.id)
    FROM track_artist l JOIN track t ON t.id = l.track_id LEFT JOIN album a ON a.id = t.album_id
    WHERE l.artist_id {among}
    UNION ALL
    SELECT c.artist_id, m.into_id, m.name, a.name,
        (SELECT count(*) FROM merged_credit o WHERE o.merged_id = m.id)
    FROM merged_credit c JOIN merged m ON m.kind = 1 AND m.id = c.merged_id LEFT JOIN album a ON a.id = m.album_id
    WHERE c.artist_id {among}
"""
AMBIGUOUS = 0  # never the id of a track


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


def fold_case(name: str) -> str:
    """Return the name in a form that ignores case: names that differ only in case have the same form."""
    return unicodedata.normalize("NFC", name.casefold())


@dataclass(slots=True)
class CatalogIndex:
    """All artists of the catalog by case-folded name, and the tracks of the artists that earlier batches named."""

    manager: int | None  # the account whose artists and tracks are preferred
    artists: dict[str, list[Artist]] = field(default_factory=lambda: defaultdict(list))  # by case-folded name
    tracks: Tracks = field(default_factory=dict)
    _created: list[Artist] = field(default_factory=list)  # by the import

    def add(self, artists: Iterable[Artist]) -> None:
        for artist in artists:
            self.artists[fold_case(artist.name)].append(artist)

    def named(self, listens: Iterable[Listen]) -> set[int]:
        """Return the ids of the artists that these plays may name."""
        names = {fold_case(name) for listen in listens if listen.track_id is None for name in listen.artists}
        return {artist.id for name in names for artist in self.artists.get(name, ())}

    def add_track(self, track: Track, artists: Iterable[int]) -> None:
        for artist in artists:
            self.tracks.setdefault(artist, {}).setdefault(fold_case(track.name), []).append(track)

    def add_created(self, artists: Collection[Artist]) -> None:
        """Add artists that a batch created, until `forget_created` is called."""
        self.add(artists)
        self._created += artists

    def forget_created(self) -> None:
        """Forget the artists that batches created, and the tracks of all artists, which the next batches load."""
        for artist in self._created:
            self.artists[fold_case(artist.name)].remove(artist)
        self._created.clear()
        self.tracks.clear()


def load(manager: int | None) -> CatalogIndex:
    """Return an index with all artists and no tracks. Call in a transaction."""
    catalog = CatalogIndex(manager)
    catalog.add(Artist(*row) for row in fetch(ARTISTS))
    return catalog


class TrackLookup:
    """Finds the track of each play in a batch. The caller must add artists and tracks that it creates to `created`."""

    def __init__(self, listens: Sequence[Listen], catalog: CatalogIndex) -> None:
        """Load the tracks that the rows may name. Call in a transaction."""
        self.created = CatalogIndex(catalog.manager)
        self._catalog = catalog
        self._ids = _ids({each.track_id for each in listens if each.track_id is not None})
        external_ids = {each for listen in listens for each in listen.external_ids}
        self._same_id = _by_code(EXTERNAL, external_ids, catalog.manager)
        self._same_isrc = _by_code(ISRC, {each.isrc for each in listens if each.isrc}, catalog.manager)
        self._by_code: dict[Code, int] = {("id", code): tracks[0] for code, tracks in self._same_id.items()}
        self._by_code |= {("isrc", code): tracks[0] for code, tracks in self._same_isrc.items()}
        self.fresh = _tracks(catalog.named(listens) - catalog.tracks.keys())

    def find(self, listen: Listen) -> int | None:
        """Return the id of the play's track, None if no track matches, AMBIGUOUS if several differ only in case."""
        if listen.track_id is not None:
            return listen.track_id if listen.track_id in self._ids else None
        codes = [*(("id", each) for each in listen.external_ids), ("isrc", listen.isrc)]
        for code in codes:
            if code in self._by_code:
                return self._by_code[code]
        if listen.track is None or not listen.artists:
            return None
        found = self._candidates(listen)
        return _choose(found, listen, self.created.manager) if found else None

    def alike(self, listen: Listen) -> set[int]:
        """Return the ids of all tracks that match the play's ids or names, regardless of their manager."""
        found = {track for each in listen.external_ids for track in self._same_id.get(each, ())}
        found.update(self._same_isrc.get(listen.isrc or "", ()))
        if listen.track is not None and listen.artists:
            found |= {track.id for track, _ in _exact(self._candidates(listen), listen) or self._candidates(listen)}
        return found

    def add_codes(self, track: int, *codes: Code) -> None:
        """Let later rows of the batch find a created track by its external id and ISRC, if it has them."""
        self._by_code |= {code: track for code in codes if code[1] is not None}

    def ambiguous_ids(self, listen: Listen) -> list[int]:
        """Return the ids of all matching tracks if `find` returns AMBIGUOUS, otherwise an empty list."""
        return sorted(track.id for track, _ in self._candidates(listen)) if self.find(listen) == AMBIGUOUS else []

    def managed(self, name: str) -> Artist | None:
        """Return the manager's artist with this name or, if only one has it in other case, that artist. Else None."""
        mine = [artist for artist in self._alike(name) if artist.manager == self.created.manager]
        exact = [artist for artist in mine if artist.name == name]
        return min(exact) if exact else mine[0] if len({artist.id for artist in mine}) == 1 else None

    def _alike(self, name: str) -> list[Artist]:
        key = fold_case(name)
        return [*self._catalog.artists.get(key, ()), *self.created.artists.get(key, ())]

    def _named(self, artist: int, key: str) -> list[Track]:
        known = self.fresh.get(artist) or self._catalog.tracks.get(artist) or {}
        return [*known.get(key, ()), *self.created.tracks.get(artist, {}).get(key, ())]

    def _candidates(self, listen: Listen) -> Collection[tuple[Track, Artist]]:
        """Return the tracks by all artists of the play or, if there are none, by its first artist, ignoring case.

        The result has pairs of a track and its artist that matches the first artist of the play.
        """
        artists = [self._alike(name) for name in listen.artists]
        key = fold_case(listen.track or "")
        first = {track.id: (track, by) for by in artists[0] for track in self._named(by.id, key)}
        found = first
        for others in artists[1:]:
            theirs = {track.id for by in others for track in self._named(by.id, key)}
            found = {track: both for track, both in found.items() if track in theirs}
        return (found or first).values()


def _choose(found: Collection[tuple[Track, Artist]], listen: Listen, manager: int | None) -> int:
    exact = _exact(found, listen)
    if not exact and len({(artist.name, track.name) for track, artist in found}) > 1:
        return AMBIGUOUS
    album = None if listen.album is None else fold_case(listen.album)
    ranks = [
        (
            track.credits != len(listen.artists),
            album is None or track.album is None or fold_case(track.album) != album,
            artist.manager != manager,
            track.id,
        )
        for track, artist in exact or found
    ]
    return min(ranks)[-1]


def _exact(found: Collection[tuple[Track, Artist]], listen: Listen) -> list[tuple[Track, Artist]]:
    """Return the candidates in `found` whose track name and first artist are spelled exactly as in the row."""
    wanted = (listen.artists[0], listen.track)
    return [(track, artist) for track, artist in found if (artist.name, track.name) == wanted]


def _ids(ids: Collection[int]) -> set[int]:
    condition, values = sql.in_list(ids)
    return {row[0] for row in fetch(TRACKS.format(among=condition), values)}


def _by_code(statement: str, codes: Collection[str], manager: int | None) -> dict[str, list[int]]:
    """Return lists of track ids by external id or ISRC: the manager's tracks first, then tracks without manager."""
    if not codes:
        return {}
    condition, values = sql.in_list(codes)
    ranks: dict[str, list[tuple[bool, bool, int]]] = defaultdict(list)
    for code, track, owner in fetch(statement.format(among=condition), values, values):
        ranks[code].append((owner != (manager or 0), owner != 0, track))
    for some in ranks.values():
        some.sort()
    return {code: [rank[2] for rank in some] for code, some in ranks.items()}


def _tracks(artists: Collection[int]) -> Tracks:
    """Return the tracks of the artists, by artist id and case-folded track name."""
    found: Tracks = {artist: {} for artist in artists}
    condition, ids = sql.in_list(artists)
    for artist, *values in fetch(OF_ARTISTS.format(among=condition), ids, ids):
        track = Track(*values)
        found[artist].setdefault(fold_case(track.name), []).append(track)
    return found
