"""Import a batch of a listening history: find or create the tracks, and store each play only once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.engine import dialect
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.plays import known_plays
from musicsvc.store.importing.plays.create_missing import CreationScope, MissingCreator
from musicsvc.store.importing.plays.known_plays import KnownPlays
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import AMBIGUOUS, CatalogIndex, TrackLookup, Tracks
from musicsvc.store.importing.plays.seen_keys import SeenKeys
from musicsvc.store.importing.summary import Counts, ImportSummary, Refusal
from musicsvc.store.importing.undoing import runs
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners, monthly, tables

PRESENT = """
    WITH asked (slot, track, listener, client_key) AS ({rows})
    SELECT p.slot, p.track_id, p.listener_id, p.client_key FROM asked JOIN play p ON p.slot = asked.slot
    AND p.track_id = asked.track AND p.listener_id = asked.listener AND p.client_key = asked.client_key
"""
TYPES = ("bigint", "bigint", "bigint", "bytea")
NO_ID = "no track has this track_id"
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_ISRC = "no track has this isrc; import the catalog first"
NO_TRACK = "no such track; --create-missing creates it"
SEVERAL = "several tracks differ only in case; name one by track_id or external_id"
Reason = tuple[str, tuple[str, ...]]  # `kind` and `names` of a Refusal
MatchedPlay = tuple[Listen, int]  # a row and the id of its track


@dataclass(slots=True)
class PlayOutcome:
    """The result of importing a batch: plays whose track was found, refused rows, and created tracks and artists."""

    tracks: Tracks
    creator: MissingCreator
    refused: dict[int, Reason] = field(default_factory=dict)  # by position in the batch
    matched: list[MatchedPlay] = field(default_factory=list)
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class PlayImporter:
    """Imports the plays of a file in batches. Attributes change only after each transaction, which may be retried."""

    store: Store
    catalog: CatalogIndex
    scope: CreationScope
    seen: SeenKeys
    run: int

    def ingest(self, batch: Sequence[Listen | Refusal], summary: ImportSummary, *, create_missing: bool) -> None:
        """Store the plays, or only count them in a dry run. Add counts and refused rows to the summary."""
        unit = partial(self._unit, batch, summary, create_missing=create_missing)
        outcome = (self.store.read(unit) if self._dry else self.store.write(unit)).result()
        self.catalog.tracks.update(outcome.tracks)
        outcome.creator.add_to(self.catalog)
        for matched in outcome.matched:
            self._remember(matched)
        refused = [
            row if isinstance(row, Refusal) else refusal(row, *outcome.refused[at])
            for at, row in enumerate(batch)
            if isinstance(row, Refusal) or at in outcome.refused
        ]
        summary.refused += refused
        summary.counts = summary.totals(_counts(batch, outcome))

    @property
    def _dry(self) -> bool:
        return self.scope.ids is not None

    def _unit(self, batch: Sequence[Listen | Refusal], summary: ImportSummary, *, create_missing: bool) -> PlayOutcome:
        runs.begin_batch(self.run)
        if not self._dry:
            tables.lock()
        kept_from = monthly.watermark().kept_from * DAY
        rows = [(at, row) for at, row in enumerate(batch) if isinstance(row, Listen)]
        lookup = TrackLookup([listen for _, listen in rows], self.catalog)
        known = KnownPlays([listen for _, listen in rows], self.run)
        outcome = PlayOutcome(lookup.fresh, MissingCreator(lookup, self.scope, [listen for _, listen in rows]))
        local: set[str] = set()
        for at, listen in rows:
            if reason := ingest.refuse_time(listen.played_at, kept_from, self.scope.now):
                outcome.refused[at] = reason, ()
                continue
            track = known.find(listen, lookup) or lookup.find(listen)
            if track is None and create_missing and _is_creatable(listen):
                track = outcome.creator.create(listen)
            if track is None or track == AMBIGUOUS:
                outcome.refused[at] = _unknown(listen, lookup.ambiguous_ids(listen))
            elif self._first(listen, local):
                outcome.matched.append((listen, track))
        outcome.creator.write(self.run)
        outcome.accepted = self._record(outcome.matched)
        runs.record_counts(self.run, summary.rows, summary.totals(_counts(batch, outcome)))
        return outcome

    def _first(self, listen: Listen, local: set[str]) -> bool:
        """Return True unless an earlier row has the same client_id. `local`: the client_ids of the batch so far."""
        if listen.client_id is None:
            return True
        if listen.client_id in local or self.seen.has(("client", listen.client_id)):
            return False
        local.add(listen.client_id)
        return True

    def _remember(self, matched: MatchedPlay) -> None:
        listen, track = matched
        if listen.client_id is not None:
            self.seen.add(("client", listen.client_id))
        if self._dry:
            self.seen.add(_play_key(listen, track))

    def _record(self, matched: Sequence[MatchedPlay]) -> int:
        """Store the plays, unless in a dry run. Return the number of plays that are new."""
        keys = {listen.listener: listeners.opaque_key(listen.listener) for listen, _ in matched}
        if self._dry:
            return self._count_new(matched, listeners.find(list(keys.values())))
        ids = listeners.ensure(keys.values())
        rows = [self._row(listen, track, ids[keys[listen.listener]]) for listen, track in matched]
        runs.add_slots(self.run, [row.slot for row in rows])
        return ingest.record(rows)

    def _count_new(self, matched: Sequence[MatchedPlay], ids: dict[str, int]) -> int:
        rows = {}
        for listen, track in matched:
            key = _play_key(listen, track)
            if not self.seen.has(key):
                rows[key] = self._row(listen, track, ids.get(listeners.opaque_key(listen.listener), 0))
        stored = [row[:4] for row in rows.values() if row.track > 0 and row.listener]
        return len(rows) - len(dialect.insert_returning(PRESENT, TYPES, stored))

    def _row(self, listen: Listen, track: int, listener: int) -> PlayRow:
        key, slot = known_plays.client_key(listen, track), listen.played_at // SLOT
        named, now = known_plays.hash_names(listen), self.scope.now
        return PlayRow(slot, track, listener, key, listen.played_at, listen.duration_ms, 0, self.run, named, now)


def _is_creatable(listen: Listen) -> bool:
    return listen.track_id is None and listen.track is not None and bool(listen.artists)


def _play_key(listen: Listen, track: int) -> tuple[object, ...]:
    """Return a key that identifies the play: rows of a file with the same play have the same key."""
    when = listen.played_at // SLOT if listen.client_id is None else listen.played_at
    return track, listen.listener, when, listen.client_id


def _unknown(listen: Listen, several: Sequence[int]) -> Reason:
    """Return why a row is refused whose track was not found. `several`: ids of matches that differ only in case."""
    if listen.track_id is not None:
        return NO_ID, (str(listen.track_id),)
    if listen.track is None or not listen.artists:
        if listen.external_ids:
            return NO_EXTERNAL_ID, tuple(map(repr, listen.external_ids))
        return NO_ISRC, (str(listen.isrc),)
    named = f"{listen.track!r} by {', '.join(listen.artists)}"
    if several:
        return SEVERAL, (f"{named} (track_id {' or '.join(map(str, several))})",)
    return NO_TRACK, (named,)


def refusal(row: Listen | Record, kind: str, names: tuple[str, ...] = ()) -> Refusal:
    """Return a Refusal of the row. `kind` is the reason, and `names` are the faulty values."""
    return Refusal(row.line, kind, names, row.member)


def _counts(batch: Sequence[Listen | Refusal], outcome: PlayOutcome) -> dict[str, Counts]:
    """Return the counts of a batch by kind."""
    refused = len(outcome.refused) + sum(isinstance(row, Refusal) for row in batch)
    valid = len(batch) - refused
    artists, tracks = len(outcome.creator.artists), len(outcome.creator.tracks)
    mentions = sum(len(listen.artists) for listen, _ in outcome.matched)
    return {
        "artists": Counts(new=artists, repeated=max(0, mentions - artists)),
        "tracks": Counts(new=tracks, repeated=valid - tracks),
        "plays": Counts(new=outcome.accepted, repeated=valid - outcome.accepted, refused=refused),
    }
