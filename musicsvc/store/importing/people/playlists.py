"""`import playlists`: append the track of each row to a playlist."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.catalog import artists, merged, tracks
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled, lock_rows
from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.cells import codes, lists, names
from musicsvc.store.importing.columns import Cells, Field, ignored
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.plays import matching
from musicsvc.store.importing.plays.listen_rows import Named
from musicsvc.store.importing.plays.matching import TrackLookup
from musicsvc.store.importing.runner import ImportOptions, Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Playlist, PlaylistTrack
from musicsvc.store.playlists import playlists
from musicsvc.wording import LONGEST_NAME

LONGEST = 250  # characters of a name, as in the API
FULL = f"a playlist has at most {playlists.MOST_TRACKS:,} tracks"
NO_TRACK, JOINED = "no such track; import the catalog first", ", or divide its artists with --divide"
NAMING = ("track", "artist", "featured_artist", "album", "album_artist")  # a track that its ids may name already
FIELDS = {
    "playlist": Field(partial(names.name, longest=LONGEST), is_name=True),
    "playlist_external_id": Field(partial(codes.identifier, noun="playlist")),
    **{name: rows.FIELDS[name] for name in ("external_id", "isrc", *NAMING)},
}
# Other columns of a catalog file are ignored.
FIELDS |= {name: Field(ignored, each.several) for name, each in rows.FIELDS.items() if name not in FIELDS}
Entry = tuple[int, int]  # playlist id, track id
Refused = dict[int, RefusedError]  # by place in a batch


class EntryRow(NamedTuple):
    """A valid row of the file: a playlist, and a track to append to it."""

    line: int
    external_id: str | None  # of the playlist
    name: str
    named: Named
    notes: Sequence[str]  # keys of summary.NOTES


class PlaylistRef(NamedTuple):
    id: int
    external_id: str | None
    name: str


class PlaylistIndex:
    """The owner's playlists, by external id and by name."""

    def __init__(self, found: Iterable[PlaylistRef]) -> None:
        self._by_id: dict[str, PlaylistRef] = {}
        self._by_name: dict[str, list[PlaylistRef]] = {}
        for each in found:
            self.put(each)

    def put(self, each: PlaylistRef) -> None:
        if each.external_id is not None:
            self._by_id[each.external_id] = each
        self._by_name.setdefault(name_key(each.name), []).append(each)

    def find(self, external_id: str | None, name: str) -> PlaylistRef | None:
        """Return the playlist with this external id, or None. If the id is None, search by name instead.

        Of several playlists with the name, one that is written so is preferred, then one without external id.
        """
        if external_id is not None:
            return self._by_id.get(external_id)
        found = self._by_name.get(name_key(name), ())
        return min(found, key=lambda each: (each.name != name, each.external_id is not None), default=None)


class Playlists(Kind[EntryRow]):
    """The import of playlists. It remembers the playlists that it has counted as new or changed."""

    name = "playlists"
    counted = ("playlists", "entries")
    refused_as = "entries"
    fields = FIELDS
    synonyms = headings.CATALOG
    required = rows.REQUIRED | {"playlist": ", or the playlist of all rows with --playlist NAME"}

    def __init__(self, options: ImportOptions) -> None:
        """Raise Failure for a name of an artist or a playlist that no row could have, and as all imports do."""
        super().__init__(options)
        self._artist = names.given("artist", options.artist, LONGEST_NAME)
        self._playlist = names.given("playlist", options.playlist, LONGEST)

    def check(self, names: list[str]) -> None:
        """Raise Failure unless the columns or options name the track and the playlist."""
        if not {"external_id", "isrc"}.isdisjoint(map(self.columns.field, names)):
            self.required = {each: also for each, also in self.required.items() if each not in rows.REQUIRED}
        super().check(names)

    def load(self, user: int | None) -> None:
        self._catalog = matching.load(user)

    def forget(self) -> None:
        self._counted: set[int] = set()

    def parse(self, record: Record, cells: Cells) -> EntryRow:
        """Validate a row. Raises RefusedError with the reasons of all faults."""
        name = cells.values.get("playlist") or self._playlist
        cells.refuse("playlist", "is missing; name a playlist for the whole file with --playlist", when=name is None)
        notes: list[str] = []
        named = _named(cells, self._artist, notes)
        if cells.faults:
            raise RefusedError(cells.reasons(FIELDS))
        return EntryRow(record.line, cells.values.get("playlist_external_id"), name or "", named, notes)

    def write(self, batch: Sequence[EntryRow], scope: Scope) -> Outcome:
        owner = scope.user or 0
        found, refused = self._find(batch, owner)
        index = PlaylistIndex(_load([row for row, _ in found.values()], owner))
        pairs, created = dict[int, Entry](), []
        for place, (row, track) in found.items():
            playlist = index.find(row.external_id, row.name)
            if playlist is None:
                playlist = self._create(row, scope)
                index.put(playlist)
                created.append(playlist.id)
            pairs[place] = playlist.id, track
        runs.made(scope.run, Playlist, created)
        if scope.actor != "cli":  # the operator's files have any number
            refused |= _beyond(pairs)
            pairs = {place: pair for place, pair in pairs.items() if place not in refused}
        new = _append(pairs.values(), scope)
        changed = {playlist for playlist, _ in new} - {*created} - self._counted
        repeated = len(pairs) - len(created) - len(changed)
        counts = {
            "entries": Counts(new=len(new), repeated=len(pairs) - len(new)),
            "playlists": Counts(new=len(created), changed=len(changed), repeated=repeated),
        }
        notes = Counter(note for place in pairs for note in found[place][0].notes)
        return Outcome(counts, refused, notes, remember=lambda: self._remember({*created, *changed}))

    def _remember(self, counted: set[int]) -> None:
        self._counted |= counted
        self._catalog.tracks |= self._lookup.fresh

    def _find(self, batch: Sequence[EntryRow], owner: int) -> tuple[dict[int, tuple[EntryRow, int]], Refused]:
        """Return the rows with their tracks, by place in the batch, and why others are refused."""
        named = merged.spread([row.named for row in batch], owner, Named.called)
        if artists.missing(self._catalog.named(named)):  # merged or deleted since they were loaded
            self._catalog = matching.load(owner)
        self._catalog.refresh()
        lookup = self._lookup = TrackLookup(named, self._catalog)
        if tracks.gone({track for each in named if (track := lookup.find(each))}):  # the same
            self._catalog.forget_tracks()
            lookup = self._lookup = TrackLookup(named, self._catalog)
        pairs = enumerate(zip(batch, named, strict=True))
        found = {place: (row, track) for place, (row, each) in pairs if (track := lookup.find(each))}
        refused = {
            place: matching.unknown(
                each, NO_TRACK + JOINED * any(map(lists.marks, each.artists)), lookup.ambiguous_ids(each)
            )
            for place, each in enumerate(named)
            if not lookup.find(each)
        }
        return found, refused

    def _create(self, row: EntryRow, scope: Scope) -> PlaylistRef:
        owner, public = scope.user or 0, self.options.public
        if row.external_id is not None:
            created = playlists.ensure_imported(owner, row.external_id, row.name, scope.now, public=public)
        else:
            created = int(Playlist.create(owner=owner, name=row.name, public=public, created_at=scope.now).id)
        return PlaylistRef(created, row.external_id, row.name)


def name_of(file: str) -> str:
    """Return the name of a file without its suffixes, which may be that of its playlist."""
    return Path(file.removesuffix(".gz")).stem[:LONGEST]


def _named(cells: Cells, artist: str | None, notes: list[str]) -> Named:
    """Return what names the row's track: its ids, its names, or both. Names may be missing or faulty beside an id."""
    read = cells.values.get
    external_id, isrc = read("external_id"), read("isrc")
    is_coded = external_id is not None or isrc is not None or "external_id" in cells.faults
    artists = rows.artists_of(cells, artist) or rows.artists_of_album(cells, [] if is_coded else notes)
    for name in NAMING if is_coded else ("album_artist",) * bool(artists):  # those that name nothing
        cells.faults.pop(name, None)
    cells.refuse("track", "is missing", when=not is_coded and read("track") is None)
    cells.refuse("artist", "is missing", when=not is_coded and not artists)
    return Named(None, () if external_id is None else (external_id,), isrc, artists, read("track"), read("album"))


def _load(wanted: Sequence[EntryRow], owner: int) -> list[PlaylistRef]:
    """Return the owner's playlists that the rows may name, oldest first, and lock them."""
    external_ids = {row.external_id for row in wanted if row.external_id is not None}
    names = name_index.spellings({row.name for row in wanted if row.external_id is None})
    found = _locked(owner, external_ids, names)
    return [PlaylistRef(*row) for row in found]


@compiled
def _locked(owner: int, external_ids: Collection[str], names: Collection[str]) -> Any:
    named = Playlist.external_id.in_(external_ids) | Playlist.name.in_(names)
    query = Playlist.select(Playlist.id, Playlist.external_id, Playlist.name)
    return lock_rows(query.where(Playlist.owner == owner, named).order_by(Playlist.id))


def _beyond(pairs: Mapping[int, Entry]) -> Refused:
    """Return the rows, given as entries by place, that playlists have no room for, as the API allows."""
    present, sizes = _present(pairs.values()), dict(_sizes({playlist for playlist, _ in pairs.values()}))
    refused = {}
    for place, pair in pairs.items():
        if pair not in present and sizes.get(pair[0], 0) >= playlists.MOST_TRACKS:
            refused[place] = RefusedError(FULL)
        elif pair not in present:
            present.add(pair)
            sizes[pair[0]] = sizes.get(pair[0], 0) + 1
    return refused


@compiled
def _sizes(ids: Collection[int]) -> Any:
    query = PlaylistTrack.select(PlaylistTrack.playlist, fn.COUNT(PlaylistTrack.id))
    return query.where(PlaylistTrack.playlist.in_(ids)).group_by(PlaylistTrack.playlist)


def _present(pairs: Iterable[Entry]) -> set[Entry]:
    """Return the entries that playlists have, of these and of others of their tracks."""
    found = set(pairs)
    return set(_existing({playlist for playlist, _ in found}, {track for _, track in found}))


def _append(pairs: Iterable[Entry], scope: Scope) -> list[Entry]:
    """Append tracks to playlists that lack them. Return the appended (playlist id, track id) pairs."""
    once = list(dict.fromkeys(pairs))
    present = _present(once)
    new = [pair for pair in once if pair not in present]
    ids = bulk.ids(PlaylistTrack, len(new))
    entries = [(entry_id, *pair, scope.user, scope.now) for entry_id, pair in zip(ids, new, strict=True)]
    bulk.insert(PlaylistTrack, ("id", "playlist", "track", "added_by", "added_at"), entries)
    runs.made(scope.run, PlaylistTrack, ids)
    return new


@compiled
def _existing(playlists: Collection[int], tracks: Collection[int]) -> Any:
    query = PlaylistTrack.select(PlaylistTrack.playlist, PlaylistTrack.track)
    return query.where(PlaylistTrack.playlist.in_(playlists), PlaylistTrack.track.in_(tracks))
