"""`import playlists`: append the track of each row to a playlist, a few hundred rows per transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.batches import in_batches, read_cells, resume_hint
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.people import playlist_rows
from musicsvc.store.importing.people import playlist_tracks as lookup
from musicsvc.store.importing.people.playlist_rows import Entry, PlaylistMemory, PlaylistRef, PlaylistScope
from musicsvc.store.importing.people.playlist_tracks import TrackMention
from musicsvc.store.importing.summary import Counts, ImportSummary, Progress, Refusal
from musicsvc.store.importing.undoing import runs

LONGEST_NAME = 250  # as in the API
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_TRACK = "no such track; import the catalog first"


@dataclass(frozen=True, slots=True)
class PlaylistOptions:
    """Import options. `pairs` map columns to fields (`column=field`). Cells with a text in `blanks` count as empty."""

    manager: str  # the e-mail address of the owner of the playlists
    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    public: bool = False  # whether new playlists are public
    dry_run: bool = False


class EntryRow(NamedTuple):
    """A valid row of the file: a playlist, and a track to append to it."""

    line: int
    external_id: str | None  # of the playlist
    name: str
    mention: TrackMention


class PlaylistOutcome(NamedTuple):
    refused: list[Refusal]
    pairs: list[Entry]  # one for each valid row
    created: list[PlaylistRef]
    new: set[Entry]


def run(store: Store, reader: Reader, options: PlaylistOptions, *, now: int, on_progress: Progress) -> ImportSummary:
    """Import the file and return a summary. Raises Failure for a damaged file. Rows before the damage stay imported."""
    columns = Columns(rows.FIELDS, options.pairs, rows.SEVERAL)  # other columns of a catalog file are ignored
    if reader.columns is not None:
        named = any(columns.field(name) == "external_id" for name in reader.columns)
        columns.check(reader.columns, ("playlist",) if named else ("playlist", *rows.REQUIRED))
    unused = columns.unused(reader.columns or [])
    summary = ImportSummary(options.dry_run, unused, counts={kind: Counts() for kind in ("playlists", "entries")})
    owner = store.read(lambda: int(users.by_email(options.manager).id)).result()
    with runs.recording(store, "playlists", reader, summary, user=owner, now=now) as run_id:
        scope, memory = PlaylistScope(owner, options.public, now, options.dry_run, run_id), PlaylistMemory()
        try:
            for records in in_batches(_parse(reader, columns, options.blanks)):
                outcome = _import_batch(store, records, scope, memory, summary)
                _add(summary, outcome, memory)
                summary.rows += len(records)
                on_progress(summary)
        except Failure as failure:
            raise Failure(failure.here + resume_hint(summary.rows, dry_run=options.dry_run)) from None
    return summary


def _parse(reader: Reader, columns: Columns, blanks: Sequence[str]) -> Iterator[EntryRow | Refusal]:
    for record in reader:
        yield Refusal(record.line, record.fault) if record.fault is not None else _row(record, columns, blanks)


def _row(record: Record, columns: Columns, blanks: Sequence[str]) -> EntryRow | Refusal:
    row = rows.Cells(read_cells(record, columns, blanks))
    name, external_id = row.text("playlist", LONGEST_NAME), row.text("playlist_external_id")
    row.refuse("playlist", "is missing", when=name is None)
    mention = _mention(row)
    if row.faults:
        return Refusal(record.line, "; ".join(f"{field} {reason}" for field, reason in row.faults.items()))
    return EntryRow(record.line, external_id, name or "", mention)


def _mention(row: rows.Cells) -> TrackMention:
    """Return the values by which the row names a track: the external id alone or, without one, the names."""
    external_id = row.text("external_id")
    if external_id is not None or "external_id" in row.faults:
        return TrackMention(external_id)
    artists = tuple(row.several("artist", rows.NAME_LENGTH))
    track, album = row.text("track"), row.text("album")
    row.refuse("track", "is missing", when=track is None)
    row.refuse("artist", "is missing", when=not artists)
    return TrackMention(None, artists, track, album)


def _import_batch(
    store: Store,
    records: Sequence[EntryRow | Refusal],
    scope: PlaylistScope,
    memory: PlaylistMemory,
    summary: ImportSummary,
) -> PlaylistOutcome:
    """Import a batch of rows in one transaction. A dry run adds playlists and tracks to `memory` instead."""
    valid = [row for row in records if isinstance(row, EntryRow)]
    invalid = [row for row in records if isinstance(row, Refusal)]

    def unit() -> PlaylistOutcome:
        runs.begin_batch(scope.run)
        tracks = lookup.find([row.mention for row in valid], manager=scope.owner)
        found = [(row, track) for row, track in zip(valid, tracks, strict=True) if track is not None]
        unknown = [_unknown(row) for row, track in zip(valid, tracks, strict=True) if track is None]
        ids, created = playlist_rows.find_or_create([(row.external_id, row.name) for row, _ in found], scope, memory)
        pairs = [(playlist, track) for playlist, (_, track) in zip(ids, found, strict=True)]
        new = playlist_rows.append(pairs, scope, memory)
        outcome = PlaylistOutcome(sorted([*unknown, *invalid]), pairs, created, new)
        runs.record_counts(scope.run, summary.rows + len(records), summary.totals(_counts(outcome, memory)))
        return outcome

    outcome = (store.read(unit) if scope.dry_run else store.write(unit)).result()
    if scope.dry_run:
        memory.unwritten += outcome.created
        memory.entries |= outcome.new
    return outcome


def _unknown(row: EntryRow) -> Refusal:
    named = row.mention
    if named.external_id is not None:
        return Refusal(row.line, NO_EXTERNAL_ID, (repr(named.external_id),))
    return Refusal(row.line, NO_TRACK, (f"{named.track!r} by {', '.join(named.artists)}",))


def _add(summary: ImportSummary, outcome: PlaylistOutcome, memory: PlaylistMemory) -> None:
    summary.refused += outcome.refused
    summary.counts = summary.totals(_counts(outcome, memory))
    memory.counted |= {playlist.id for playlist in outcome.created} | {playlist for playlist, _ in outcome.new}


def _counts(outcome: PlaylistOutcome, memory: PlaylistMemory) -> dict[str, Counts]:
    """Return the counts of a batch by kind. Each playlist counts as new or changed in one batch only."""
    new, created = len(outcome.new), {playlist.id for playlist in outcome.created}
    changed = {playlist for playlist, _ in outcome.new} - created - memory.counted
    repeated = len(outcome.pairs) - len(created) - len(changed)
    return {
        "entries": Counts(new=new, repeated=len(outcome.pairs) - new, refused=len(outcome.refused)),
        "playlists": Counts(new=len(created), changed=len(changed), repeated=repeated),
    }
