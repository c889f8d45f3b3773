"""`import plays`: import listening histories. Each play is stored once, for a track that is found or created."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from musicsvc.clock import DAY
from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.plays import listen_rows, matching, repeats
from musicsvc.store.importing.plays.create_missing import MissingCreator
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import AMBIGUOUS, TrackLookup
from musicsvc.store.importing.plays.repeats import KnownPlays, SeenIds
from musicsvc.store.importing.runner import ImportOptions, Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import blocks, counts, listeners

SUBJECTS_A_FOLD = 2000
NO_LISTENER = "The file does not say whose plays these are: add --listener NAME, or --map COLUMN=listener."
NO_TRACK_COLUMN = (
    "No column names the track. Add --map COLUMN=FIELD: track_id, external_id, isrc, or both artist and track."
)
NO_ID = "no track has this track_id"
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_ISRC = "no track has this isrc; import the catalog first"
NO_TRACK = "no such track; --create-missing creates it"
SEVERAL = "several tracks differ only in case; name one by track_id or external_id"


class Plays(Kind[Listen]):
    """The import of plays. It remembers the names of all artists, and the client_ids of the rows."""

    name = "plays"
    counted = ("artists", "tracks", "plays")
    refused_as = "plays"
    fields = listen_rows.FIELDS
    several = listen_rows.SEVERAL
    required = ("played_at",)
    rows_a_unit = 2000  # about 50 ms per transaction, so that a running server hardly waits

    def __init__(self, options: ImportOptions) -> None:
        super().__init__(options)
        self._listener = None if options.listener is None else options.listener.strip()
        if self._listener is not None and not 1 <= len(self._listener) <= listen_rows.LISTENER_LENGTH:
            raise Failure(f"The listener's name must have 1 to {listen_rows.LISTENER_LENGTH} characters.")
        self._seen = SeenIds()

    def check(self, names: list[str]) -> None:
        """Raise Failure unless the columns name the time, the track and (without a default) the listener of plays."""
        super().check(names)
        found = {self.columns.field(name) for name in names}
        if not (found & {"track_id", "external_id", "isrc"} or found >= {"artist", "track"}):
            raise Failure(NO_TRACK_COLUMN)
        if "listener" not in found and self._listener is None:
            raise Failure(NO_LISTENER)

    def load(self, user: int | None) -> None:
        self._catalog = matching.load(user)

    def forget(self) -> None:
        self._catalog.forget_created()

    def parse(self, record: Record, cells: dict[str, list[Any]]) -> Listen:
        return listen_rows.parse(record, cells, self._listener)

    def write(self, batch: Sequence[Listen], scope: Scope) -> Outcome:
        counts.lock()
        kept_from = blocks.progress().kept_from * DAY
        lookup, known = TrackLookup(batch, self._catalog), KnownPlays(batch, scope.run)
        creator = MissingCreator(lookup, scope, batch)
        outcome = Outcome()
        matched: list[tuple[Listen, int]] = []
        ids: set[str] = set()
        for place, listen in enumerate(batch):
            if reason := ingest.refuse_time(listen.played_at, kept_from, scope.now):
                outcome.refused[place] = RefusedError(reason)
                continue
            track = known.find(listen, lookup) or lookup.find(listen)
            if track is None and self.options.create_missing and _is_creatable(listen):
                track = creator.create(listen)
            if track is None or track == AMBIGUOUS:
                outcome.refused[place] = _unknown(listen, lookup.ambiguous_ids(listen))
            elif listen.client_id is None or not (listen.client_id in ids or self._seen.has(listen.client_id)):
                matched.append((listen, track))
                if listen.client_id is not None:
                    ids.add(listen.client_id)
        creator.write()
        new, valid = _record(matched, scope), len(batch) - len(outcome.refused)
        artists, tracks = len(creator.artists), len(creator.tracks)
        named = sum(len(listen.artists) for listen, _ in matched)
        outcome.counts = {
            "artists": Counts(new=artists, repeated=max(0, named - artists)),
            "tracks": Counts(new=tracks, repeated=valid - tracks),
            "plays": Counts(new=new, repeated=valid - new),
        }
        outcome.remember = partial(self._remember, creator, ids)
        return outcome

    def _remember(self, creator: MissingCreator, ids: set[str]) -> None:
        creator.add_to(self._catalog)
        for client_id in ids:
            self._seen.add(client_id)

    def finish(self, store: Store) -> None:
        while store.write(partial(blocks.roll_up, SUBJECTS_A_FOLD)).result():
            pass

    def close(self) -> None:
        self._seen.close()


def _record(matched: Sequence[tuple[Listen, int]], scope: Scope) -> int:
    """Store the plays, given with their tracks. Return the number of plays that are new."""
    keys = {listen.listener: listeners.opaque_key(listen.listener) for listen, _ in matched}
    ids = listeners.ensure(keys.values())
    rows = [_row(listen, track, ids[keys[listen.listener]], scope) for listen, track in matched]
    runs.add_slots(scope.run, [row.slot for row in rows])
    return ingest.record(rows)


def _row(listen: Listen, track: int, listener: int, scope: Scope) -> PlayRow:
    key, slot = repeats.client_key(listen, track), listen.played_at // SLOT
    named = repeats.hash_names(listen)
    return PlayRow(slot, track, listener, key, listen.played_at, listen.duration_ms, 0, scope.run, named, scope.now)


def _is_creatable(listen: Listen) -> bool:
    return listen.track_id is None and listen.track is not None and bool(listen.artists)


def _unknown(listen: Listen, several: Sequence[int]) -> RefusedError:
    """Return why a row is refused whose track was not found. `several`: ids of matches that differ only in case."""
    if listen.track_id is not None:
        return RefusedError(NO_ID, names=(str(listen.track_id),))
    if listen.track is None or not listen.artists:
        if listen.external_ids:
            return RefusedError(NO_EXTERNAL_ID, names=tuple(map(repr, listen.external_ids)))
        return RefusedError(NO_ISRC, names=(str(listen.isrc),))
    named = f"{listen.track!r} by {', '.join(listen.artists)}"
    if several:
        return RefusedError(SEVERAL, names=(f"{named} (track_id {' or '.join(map(str, several))})",))
    return RefusedError(NO_TRACK, names=(named,))
