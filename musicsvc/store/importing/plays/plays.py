"""`import plays`: import listening histories. Each play is stored once, for a track that is found or created."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from peewee import Model

from musicsvc.clock import DAY
from musicsvc.store.catalog import artists, identifiers, merged, tracks
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import headings
from musicsvc.store.importing.cells import names
from musicsvc.store.importing.cells.notations import fault_of
from musicsvc.store.importing.columns import SUMS, Cells
from musicsvc.store.importing.files.records import Record, UnclearError
from musicsvc.store.importing.plays import listen_rows, matching
from musicsvc.store.importing.plays.listen_rows import Known, Listen, Named
from musicsvc.store.importing.plays.matching import Artist, SeenIds, Track, TrackLookup
from musicsvc.store.importing.plays.repeats import KnownPlays, NearPlay, NearPlays
from musicsvc.store.importing.runner import ImportOptions, Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist as ArtistTable
from musicsvc.store.models import Track as TrackTable
from musicsvc.store.models import TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.wording import cut

SUBJECTS_A_FOLD = 2000
NO_LISTENER = "The file does not say whose plays these are.", "Add --listener NAME, or --map COLUMN=listener."
NO_TRACK_COLUMN = (
    "No column names the track.",
    "Add --map COLUMN=FIELD: track_id, external_id, isrc, or both artist and track.",
)
NO_TRACK = "no such track; --create-missing creates it"


class CreatedTrack(NamedTuple):
    """A track that an import creates, with the ids of its artists, its id in another service and its ISRC."""

    track: Track
    artists: tuple[int, ...]
    external_id: str | None
    isrc: str | None


class MissingCreator:
    """Collects the artists and tracks that a batch of plays names and the catalog lacks, to insert them together."""

    def __init__(self, lookup: TrackLookup, scope: Scope, rows: Sequence[Named]) -> None:
        self.artists: list[Artist] = []
        self.tracks: list[CreatedTrack] = []
        self._lookup = lookup
        self._scope = scope
        self._track_ids = _ids(TrackTable, len(rows))
        self._artist_ids = _ids(ArtistTable, sum(len(each.artists) for each in rows))

    def create(self, named: Named) -> int:
        """Add the track of a row, and its artists that do not exist, to the collection. Return the track's id."""
        credit = tuple(dict.fromkeys(self._artist(name) for name in named.artists))
        external_id = next(iter(named.external_ids), None)
        track = Track(next(self._track_ids), named.track or "", None, len(credit))
        self.tracks.append(CreatedTrack(track, credit, external_id, named.isrc))
        self._lookup.created.add_track(track, credit)
        self._lookup.add_codes(track.id, ("id", external_id), ("isrc", named.isrc))
        return track.id

    def _artist(self, name: str) -> int:
        known = self._lookup.managed(name)
        if known is not None:
            return known.id
        artist = Artist(next(self._artist_ids), name, self._scope.user)
        self.artists.append(artist)
        self._lookup.created.add([artist])
        return artist.id

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


def _ids(table: type[Model], most: int) -> Iterator[int]:
    """Yield up to `most` unused ids, which are taken together once the first is needed."""
    yield from bulk.ids(table, most)


@dataclass(slots=True)
class FoundPlays:
    """The rows of a batch as they were sorted. `matched`: plays to store, with their tracks, by place in the batch."""

    matched: dict[int, tuple[Listen, int]] = field(default_factory=dict)
    refused: dict[int, RefusedError] = field(default_factory=dict)  # by place in the batch
    client_ids: set[str] = field(default_factory=set)
    replaced: list[tuple[NearPlay, Listen]] = field(default_factory=list)  # stored plays, with rows that replace them
    taken: set[str] = field(default_factory=set)  # see `NearPlays`


class Plays(Kind[Listen]):
    """The import of plays. It remembers the names of all artists, and the client_ids of the rows."""

    name = "plays"
    counted = ("artists", "tracks", "plays")
    refused_as = "plays"
    fields = listen_rows.FIELDS
    synonyms = headings.PLAYS
    required = {"played_at": ""}  # noqa: RUF012 - a constant

    def __init__(self, options: ImportOptions) -> None:
        """Raise Failure for a name of a listener that is empty or too long, and as all imports do."""
        super().__init__(options)
        self._listener = names.given("listener", options.listener, listen_rows.LISTENER_LENGTH)
        self._seen, self._taken = SeenIds(), SeenIds()
        self._known: Known = {}

    def check(self, names: list[str]) -> None:
        """Raise Failure for sums of plays, or unless the columns name time, track and (without a default) listener."""
        for each in self.columns.guesses:
            if each.field == SUMS and each.parse and (fault := fault_of(each.parse, 1)):
                raise UnclearError(
                    f"The column {cut(each.column)!r} cannot be read: {SUMS} {fault}. Import a table of single plays.",
                    f'To count each row as one play, add --map "{cut(each.column)}=".',
                )
        super().check(names)
        found = {self.columns.field(name) for name in names}
        if not (found & {"track_id", "external_id", "isrc"} or found >= {"artist", "track"}):
            raise UnclearError(*NO_TRACK_COLUMN)
        if "listener" not in found and self._listener is None:
            raise UnclearError(*NO_LISTENER)

    def load(self, user: int | None) -> None:
        self._catalog = matching.load(user)

    def forget(self) -> None:
        self._catalog.forget_later()
        self._seen.close()
        self._seen = SeenIds()

    def parse(self, record: Record, cells: Cells) -> Listen:
        return listen_rows.parse(record, cells, self._listener, self._known)

    def write(self, batch: Sequence[Listen], scope: Scope) -> Outcome:
        if self.options.create_missing and any(listen.named.isrc for listen in batch):
            identifiers.lock()  # before that of plays, as edits do
        counting.lock()
        rows = [*{listen.named: None for listen in batch}]
        if artists.missing(self._catalog.named(rows)):  # merged or deleted since they were loaded
            self._catalog = matching.load(scope.user)
        self._catalog.refresh()
        spread = merged.spread(rows, scope.user or 0, Named.called)
        if spread is not rows:
            others = dict(zip(rows, spread, strict=True))
            rows, batch = [*spread], [each._replace(named=others[each.named]) for each in batch]
        lookup = TrackLookup(rows, self._catalog)
        creator = MissingCreator(lookup, scope, rows)
        keys = {name: listeners.opaque_key(name) for name in {listen.listener for listen in batch}}
        ids = listeners.find([*keys.values()])
        people = {name: ids[key] for name, key in keys.items() if key in ids}
        found = self._find(batch, people, lookup, creator, scope)
        creator.write()
        self._replace_missing(found)
        _replace(found.replaced, scope)
        valid = [listen for place, listen in enumerate(batch) if place not in found.refused]
        counts = _counts(valid, creator, _record(found.matched.values(), people, scope))
        made = [artist.name for artist in creator.artists]
        return Outcome(counts, found.refused, artists=made, remember=partial(self._remember, lookup, found))

    def _find(
        self,
        batch: Sequence[Listen],
        people: Mapping[str, int],
        lookup: TrackLookup,
        creator: MissingCreator,
        scope: Scope,
    ) -> FoundPlays:
        """Find the track of each play that is not stored yet, or create it with `--create-missing`."""
        known, kept_from = KnownPlays(batch, people, scope.run), blocks.progress().kept_from * DAY
        near = NearPlays(known, people, lookup, self._taken)
        found = FoundPlays(taken=near.taken)
        latest, tracks = scope.now + ingest.AHEAD, self._catalog.found
        for place, listen in enumerate(batch):
            if not kept_from <= listen.played_at <= latest:
                reason = ingest.refuse_time(listen.played_at, kept_from, scope.now)
                found.refused[place] = RefusedError(str(reason))
                continue
            repeated = known.plays and known.has(listen, lookup)
            play = near.find(listen) if near.plays and (listen.to_minute or not repeated) else None
            if repeated or play is not None:
                if self._is_first(listen.client_id, found) and play is not None:
                    _meet(play, listen, near, found)
            elif track := tracks.get(listen.named) or self._track(listen.named, lookup, creator):
                if listen.client_id is None or self._is_first(listen.client_id, found):
                    found.matched[place] = listen, track
                    if near.is_needed:
                        near.store(listen, track, place)
            else:
                found.refused[place] = matching.unknown(listen.named, NO_TRACK, lookup.ambiguous_ids(listen.named))
        return found

    def _track(self, named: Named, lookup: TrackLookup, creator: MissingCreator) -> int | None:
        """Return the id of the row's track, None or AMBIGUOUS. It is created if it is missing and that was asked."""
        track = lookup.find(named)
        creatable = track is None and named.track_id is None and named.track is not None and bool(named.artists)
        return creator.create(named) if self.options.create_missing and creatable else track

    def _is_first(self, client_id: str | None, found: FoundPlays) -> bool:
        """Return False if an earlier row of the file has the client_id. Otherwise, remember it."""
        if client_id is None:
            return True
        if client_id in found.client_ids or self._seen.has(client_id):
            return False
        found.client_ids.add(client_id)
        return True

    def _replace_missing(self, found: FoundPlays) -> None:
        """Find the other track for plays of tracks that were merged after an earlier batch had loaded them.

        Plays of tracks that were deleted since are refused. Later batches load again.
        """
        gone = tracks.gone({track for _, track in found.matched.values()})
        for place, (listen, track) in [*found.matched.items()] if gone else ():
            if other := gone.get(track, track):
                found.matched[place] = listen, other
            else:
                found.refused[place] = matching.unknown(listen.named, NO_TRACK)
                del found.matched[place]
            self._catalog.forget_tracks()

    def _remember(self, lookup: TrackLookup, found: FoundPlays) -> None:
        self._catalog.tracks |= lookup.fresh
        self._catalog.remember(lookup.found)
        self._seen.add(found.client_ids)
        self._taken.add(found.taken)

    def finish(self, store: Store) -> None:
        while store.write(partial(blocks.roll_up, SUBJECTS_A_FOLD)).result():
            pass

    def close(self) -> None:
        self._seen.close()
        self._taken.close()


def _meet(play: NearPlay, listen: Listen, near: NearPlays, found: FoundPlays) -> None:
    """Let the row stand for the play or, if its time is not cut to the minute, replace it."""
    if listen.to_minute:
        near.take(play)
    elif play.place is None:
        found.replaced.append((play, near.replace(play, listen)))
    else:
        found.matched[play.place] = near.replace(play, listen), play.track


def _replace(replaced: Collection[tuple[NearPlay, Listen]], scope: Scope) -> None:
    """Give stored plays the times of rows. They remain plays of their imports."""
    withdrawal.remove([(play.slot, play.track, play.listener, play.client_key) for play, _ in replaced])
    rows = [
        _row(listen, play.track, play.listener, scope)._replace(import_id=play.import_id) for play, listen in replaced
    ]
    for run in {row.import_id for row in rows if row.import_id is not None}:
        runs.add_slots(run, [row.slot for row in rows if row.import_id == run])
    ingest.record(rows)


def _record(matched: Collection[tuple[Listen, int]], people: Mapping[str, int], scope: Scope) -> int:
    """Store the plays, given with their tracks. Return the number of plays that are new."""
    new = {listeners.opaque_key(name): name for name in {listen.listener for listen, _ in matched} - people.keys()}
    ids = {**people, **{new[key]: number for key, number in listeners.ensure(new).items()}}
    rows = [_row(listen, track, ids[listen.listener], scope) for listen, track in matched]
    runs.add_slots(scope.run, {listen.played_at // SLOT for listen, _ in matched})
    return ingest.record(rows)


def _row(listen: Listen, track: int, listener: int, scope: Scope) -> PlayRow:
    _, _, named, _, at, length, client_id, to_minute = listen
    if client_id is None and named.hashes and not to_minute:
        key, names = WITHOUT_ID, named.hashes[0]
    else:
        key, names = matching.client_key(listen, track, listener), matching.stored_hash(listen)
    # A third of the time of a call of the class, of which there is one for each row.
    return tuple.__new__(PlayRow, (at // SLOT, track, listener, key, at, length, 0, scope.run, names, scope.now, None))


def _counts(valid: Sequence[Listen], creator: MissingCreator, new: int) -> dict[str, Counts]:
    """Return the counts of a batch. `valid`: the rows that are not refused, `new`: the number of new plays."""
    named, rows = sum(len(listen.named.artists) for listen in valid), len(valid)
    made, created = len(creator.artists), len(creator.tracks)
    return {
        "artists": Counts(new=made, repeated=named - made),
        "tracks": Counts(new=created, repeated=rows - created),
        "plays": Counts(new=new, repeated=rows - new),
    }
