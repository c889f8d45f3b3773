"""A piece of a listening history on its way in: its tracks found or made, its plays recorded, each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from musicsvc.clock import DAY
from musicsvc.store.engine import dialect
from musicsvc.store.importing.batches import take_turn
from musicsvc.store.importing.create_missing import Maker, Scope
from musicsvc.store.importing.listen_rows import Listen
from musicsvc.store.importing.matching import AMBIGUOUS, Lookup
from musicsvc.store.importing.summary import Counts, Refusal, Summary
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners, monthly, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.matching import Catalog, Tracks
    from musicsvc.store.importing.readers import Record
    from musicsvc.store.importing.seen_keys import Seen

PRESENT = """
    WITH asked (slot, track, listener, client_key) AS ({rows})
    SELECT p.slot, p.track_id, p.listener_id, p.client_key FROM asked JOIN play p ON p.slot = asked.slot
    AND p.track_id = asked.track AND p.listener_id = asked.listener AND p.client_key = asked.client_key
"""
TYPES = ("bigint", "bigint", "bigint", "bytea")
NO_ID = "no track has this track_id"
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_TRACK = "no such track; --create-missing creates it"
SEVERAL = "several tracks differ in case alone; name one by track_id or external_id"
Reason = tuple[str, tuple[str, ...]]  # the kind and the names of a refusal
Taken = tuple[Listen, int]  # a row and its track


@dataclass(slots=True)
class Outcome:
    """What became of a piece, and what later pieces need to know of it."""

    tracks: Tracks
    maker: Maker
    refused: dict[int, Reason] = field(default_factory=dict)  # by the place in the piece
    taken: list[Taken] = field(default_factory=list)
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Batches:
    """What the pieces of one file share. A unit may run twice and leaves all of it as it is."""

    store: Store
    catalog: Catalog
    scope: Scope
    seen: Seen

    def put(self, piece: Sequence[Listen | Refusal], summary: Summary, *, create_missing: bool) -> None:
        """Put the rows in, or find out what would happen; rows that are refused already are told in their turn."""
        unit = partial(self._unit, piece, create_missing=create_missing)
        outcome = (self.store.read(unit) if self._dry else self.store.write(unit)).result()
        self.catalog.tracks.update(outcome.tracks)
        outcome.maker.keep(self.catalog)
        for taken in outcome.taken:
            self._remember(taken)
        refused = [
            row if isinstance(row, Refusal) else refusal(row, *outcome.refused[at])
            for at, row in enumerate(piece)
            if isinstance(row, Refusal) or at in outcome.refused
        ]
        summary.refused += refused
        _count(summary, outcome, len(piece) - len(refused), len(refused))

    @property
    def _dry(self) -> bool:
        return self.scope.ids is not None

    def _unit(self, piece: Sequence[Listen | Refusal], *, create_missing: bool) -> Outcome:
        if not self._dry:
            take_turn()
            tables.lock()
        kept_from = monthly.watermark().kept_from * DAY
        rows = [(at, row) for at, row in enumerate(piece) if isinstance(row, Listen)]
        lookup = Lookup([listen for _, listen in rows], self.catalog)
        outcome = Outcome(lookup.fresh, Maker(lookup, self.scope, [listen for _, listen in rows]))
        local: set[str] = set()
        for at, listen in rows:
            if reason := ingest.refuse_time(listen.played_at, kept_from, self.scope.now):
                outcome.refused[at] = reason, ()
                continue
            track = lookup.find(listen)
            if track is None and create_missing and _makeable(listen):
                track = outcome.maker.make(listen)
            if track is None or track == AMBIGUOUS:
                outcome.refused[at] = _unknown(listen, lookup.several(listen))
            elif self._first(listen, local):
                outcome.taken.append((listen, track))
        outcome.maker.write()
        outcome.accepted = self._record(outcome.taken)
        return outcome

    def _first(self, listen: Listen, local: set[str]) -> bool:
        """Whether the file has not had the client's id of the row yet."""
        if listen.client_id is None:
            return True
        if listen.client_id in local or self.seen.has(("client", listen.client_id)):
            return False
        local.add(listen.client_id)
        return True

    def _remember(self, taken: Taken) -> None:
        listen, track = taken
        if listen.client_id is not None:
            self.seen.add(("client", listen.client_id))
        if self._dry:
            self.seen.add(_play_key(listen, track))

    def _record(self, taken: Sequence[Taken]) -> int:
        """Record the plays; how many were new, or would be."""
        keys = {listen.listener: listeners.opaque_key(listen.listener) for listen, _ in taken}
        if self._dry:
            return self._would_be_new(taken, listeners.find(list(keys.values())))
        ids = listeners.ensure(keys.values())
        return ingest.record([_row(listen, track, ids[keys[listen.listener]]) for listen, track in taken])

    def _would_be_new(self, taken: Sequence[Taken], ids: dict[str, int]) -> int:
        rows = {}
        for listen, track in taken:
            key = _play_key(listen, track)
            if not self.seen.has(key):
                rows[key] = _row(listen, track, ids.get(listeners.opaque_key(listen.listener), 0))
        asked = [row[:4] for row in rows.values() if row.track > 0 and row.listener]
        return len(rows) - len(dialect.insert_returning(PRESENT, TYPES, asked))


def _makeable(listen: Listen) -> bool:
    return listen.track_id is None and listen.track is not None and bool(listen.artists)


def _play_key(listen: Listen, track: int) -> tuple[object, ...]:
    """What two rows that are one play share."""
    when = listen.played_at // SLOT if listen.client_id is None else listen.played_at
    return track, listen.listener, when, listen.client_id


def _row(listen: Listen, track: int, listener: int) -> PlayRow:
    key = WITHOUT_ID
    if listen.client_id is not None:
        # Of another file, a play is the same where its listener, track and time are the same as well.
        key = ingest.client_key("import", repr((track, listen.played_at, listen.listener, listen.client_id)))
    return PlayRow(listen.played_at // SLOT, track, listener, key, listen.played_at, listen.duration_ms, 0)


def _unknown(listen: Listen, several: Sequence[int]) -> Reason:
    """Why no track is the row's; `several` are the ids of those that might be."""
    if listen.track_id is not None:
        return NO_ID, (str(listen.track_id),)
    if listen.track is None or not listen.artists:
        return NO_EXTERNAL_ID, tuple(map(repr, listen.external_ids))
    named = f"{listen.track!r} by {', '.join(listen.artists)}"
    if several:
        return SEVERAL, (f"{named} (track_id {' or '.join(map(str, several))})",)
    return NO_TRACK, (named,)


def refusal(row: Listen | Record, kind: str, names: tuple[str, ...] = ()) -> Refusal:
    """The refusal of a row, by its line; of an archive, with the name of the file in it."""
    return Refusal(row.line, kind, names, row.member)


def _count(summary: Summary, outcome: Outcome, sound: int, refused: int) -> None:
    """Count what the sound rows named, and the others."""
    artists, tracks = len(outcome.maker.artists), len(outcome.maker.tracks)
    mentions = sum(len(listen.artists) for listen, _ in outcome.taken)
    summary.counts["artists"].add(Counts(new=artists, repeated=max(0, mentions - artists)))
    summary.counts["tracks"].add(Counts(new=tracks, repeated=sound - tracks))
    summary.counts["plays"].add(Counts(new=outcome.accepted, repeated=sound - outcome.accepted, refused=refused))
