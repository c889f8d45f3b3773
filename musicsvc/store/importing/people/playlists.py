"""`import playlists`: append the track of each row to a playlist."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled, lock_rows
from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.cells import codes, names
from musicsvc.store.importing.columns import Cells, Field
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.people import playlist_tracks
from musicsvc.store.importing.people.playlist_tracks import TrackMention
from musicsvc.store.importing.runner import Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Playlist, PlaylistTrack
from musicsvc.store.playlists import playlists

LONGEST_NAME = 250  # as in the API
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_TRACK = "no such track; import the catalog first"
NAMING = ("track", "artist", "featured_artist", "album", "album_artist")  # of a track without external id
FIELDS = {
    "playlist": Field(partial(names.name, longest=LONGEST_NAME), is_name=True),
    "playlist_external_id": Field(partial(codes.identifier, noun="playlist")),
    **{name: rows.FIELDS[name] for name in ("external_id", *NAMING)},
}
# Other columns of a catalog file are ignored.
FIELDS |= {name: Field(lambda _: None, each.several) for name, each in rows.FIELDS.items() if name not in FIELDS}
Entry = tuple[int, int]  # playlist id, track id


class EntryRow(NamedTuple):
    """A valid row of the file: a playlist, and a track to append to it."""

    line: int
    external_id: str | None  # of the playlist
    name: str
    mention: TrackMention
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
    required = {"playlist": ""}  # noqa: RUF012 - a constant

    def check(self, names: list[str]) -> None:
        super().check(names)
        if not any(self.columns.field(name) == "external_id" for name in names):
            self.columns.check(names, dict.fromkeys(rows.REQUIRED, ""))

    def forget(self) -> None:
        self._counted: set[int] = set()

    def parse(self, record: Record, cells: Cells) -> EntryRow:
        """Validate a row. Raises RefusedError with the reasons of all faults."""
        name = cells.values.get("playlist")
        cells.refuse("playlist", "is missing", when=name is None)
        notes: list[str] = []
        mention = _mention(cells, notes)
        if cells.faults:
            raise RefusedError(cells.reasons(FIELDS))
        return EntryRow(record.line, cells.values.get("playlist_external_id"), name or "", mention, notes)

    def write(self, batch: Sequence[EntryRow], scope: Scope) -> Outcome:
        owner = scope.user or 0
        tracks = playlist_tracks.find([row.mention for row in batch], manager=owner)
        refused = {place: _unknown(row) for place, row in enumerate(batch) if tracks[place] is None}
        found = [(row, track) for row, track in zip(batch, tracks, strict=True) if track is not None]
        index = PlaylistIndex(_load([row for row, _ in found], owner))
        pairs, created = [], []
        for row, track in found:
            playlist = index.find(row.external_id, row.name)
            if playlist is None:
                playlist = self._create(row, scope)
                index.put(playlist)
                created.append(playlist.id)
            pairs.append((playlist.id, track))
        runs.made(scope.run, Playlist, created)
        new = _append(pairs, scope)
        changed = {playlist for playlist, _ in new} - {*created} - self._counted
        repeated = len(pairs) - len(created) - len(changed)
        counts = {
            "entries": Counts(new=len(new), repeated=len(pairs) - len(new)),
            "playlists": Counts(new=len(created), changed=len(changed), repeated=repeated),
        }
        notes = Counter(note for row, _ in found for note in row.notes)
        return Outcome(counts, refused, notes, remember=lambda: self._counted.update(created, changed))

    def _create(self, row: EntryRow, scope: Scope) -> PlaylistRef:
        owner, public = scope.user or 0, self.options.public
        if row.external_id is not None:
            created = playlists.ensure_imported(owner, row.external_id, row.name, scope.now, public=public)
        else:
            created = int(Playlist.create(owner=owner, name=row.name, public=public, created_at=scope.now).id)
        return PlaylistRef(created, row.external_id, row.name)


def _mention(cells: Cells, notes: list[str]) -> TrackMention:
    """Return the values by which the row names a track: the external id alone or, without one, the names."""
    read = cells.values.get
    external_id = read("external_id")
    if external_id is not None or "external_id" in cells.faults:
        for name in NAMING:
            cells.faults.pop(name, None)
        return TrackMention(external_id)
    artists, track = rows.artists_of(cells) or rows.artists_of_album(cells, notes), read("track")
    if artists:
        cells.faults.pop("album_artist", None)  # it names none of them
    cells.refuse("track", "is missing", when=track is None)
    cells.refuse("artist", "is missing", when=not artists)
    return TrackMention(None, artists, track, read("album"))


def _unknown(row: EntryRow) -> RefusedError:
    named = row.mention
    if named.external_id is not None:
        return RefusedError(NO_EXTERNAL_ID, names=(repr(named.external_id),))
    return RefusedError(NO_TRACK, names=(f"{named.track!r} by {', '.join(named.artists)}",))


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


def _append(pairs: Iterable[Entry], scope: Scope) -> list[Entry]:
    """Append tracks to playlists that lack them. Return the appended (playlist id, track id) pairs."""
    once = list(dict.fromkeys(pairs))
    present = set(_existing({playlist for playlist, _ in once}, {track for _, track in once}))
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
