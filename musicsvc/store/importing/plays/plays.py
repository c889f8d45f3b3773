"""`import plays`: import listening histories, a few thousand rows per transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.batches import read_cells, resume_hint
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader
from musicsvc.store.importing.plays import listen_rows, matching
from musicsvc.store.importing.plays.create_missing import CreationScope, dry_run_ids
from musicsvc.store.importing.plays.ingest import PlayImporter, refusal
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.seen_keys import SeenKeys
from musicsvc.store.importing.summary import Counts, ImportSummary, Progress, Refusal
from musicsvc.store.importing.undoing import runs
from musicsvc.store.plays.rollups import monthly

ROWS_A_UNIT = 2000  # about 50 ms per transaction, so that a running server hardly waits
SUBJECTS_A_FOLD = 2000
KINDS = ("artists", "tracks", "plays")
NO_LISTENER = "The file does not say whose plays these are: add --listener NAME, or --map COLUMN=listener."
NO_TRACK = "No column names the track. Add --map COLUMN=FIELD: track_id, external_id, isrc, or both artist and track."


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """Import options. `pairs` map columns to fields (`column=field`). Cells with a text in `blanks` count as empty."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    listener: str | None = None  # of rows that name none
    manager: str | None = None  # the e-mail address of the manager of created artists and tracks
    create_missing: bool = False
    dry_run: bool = False


def run(store: Store, reader: Reader, options: PlayOptions, *, now: int, on_progress: Progress) -> ImportSummary:
    """Import the file and return a summary. Raises Failure for a damaged file. Rows before the damage stay imported."""
    columns = Columns(listen_rows.FIELDS, options.pairs, listen_rows.SEVERAL)
    if reader.columns is not None:
        _check(columns, reader.columns, options)
    if options.listener is not None and not 1 <= len(options.listener.strip()) <= listen_rows.LISTENER_LENGTH:
        raise Failure(f"The listener's name must have 1 to {listen_rows.LISTENER_LENGTH} characters.")
    summary = ImportSummary(
        options.dry_run, columns.unused(reader.columns or []), counts={kind: Counts() for kind in KINDS}
    )
    manager = None if options.manager is None else store.read(partial(_manager, options.manager)).result()
    catalog = store.read(partial(matching.load, manager)).result()
    with SeenKeys() as seen, runs.recording(store, "plays", reader, summary, user=manager, now=now) as run:
        scope = CreationScope(manager, now, dry_run_ids() if options.dry_run else None)
        importer = PlayImporter(store, catalog, scope, seen, run)
        on_progress(summary)
        try:
            for batch in _in_batches(_parse(reader, columns, options, summary)):
                importer.ingest(batch, summary, create_missing=options.create_missing)
                on_progress(summary)
        except Failure as failure:
            through = summary.rows - summary.rows % ROWS_A_UNIT
            raise Failure(failure.here + resume_hint(through, dry_run=options.dry_run)) from None
    while not options.dry_run and store.write(partial(monthly.roll_up, SUBJECTS_A_FOLD)).result():
        pass
    return summary


def _check(columns: Columns, names: list[str], options: PlayOptions) -> None:
    """Raise Failure unless the columns name the time, the track and (without a default) the listener of each play."""
    columns.check(names, ("played_at",))
    found = {columns.field(name) for name in names}
    if not (found & {"track_id", "external_id", "isrc"} or found >= {"artist", "track"}):
        raise Failure(NO_TRACK)
    if "listener" not in found and options.listener is None:
        raise Failure(NO_LISTENER)


def _manager(email: str) -> int:
    return int(users.by_email(email).id)


def _parse(
    reader: Reader, columns: Columns, options: PlayOptions, summary: ImportSummary
) -> Iterator[Listen | Refusal | None]:
    """Yield the play in each row, or a Refusal if the row is invalid, or None if the row is not a play."""
    listener = None if options.listener is None else options.listener.strip()
    for record in reader:
        summary.rows += 1
        if record.note is not None:
            summary.notes[record.note] += 1
            yield None
        elif record.fault is not None:
            yield refusal(record, record.fault)
        else:
            try:
                yield listen_rows.parse(record, read_cells(record, columns, options.blanks), listener)
            except listen_rows.RefusedError as refused:
                yield refusal(record, str(refused))


def _in_batches(found: Iterator[Listen | Refusal | None]) -> Iterator[list[Listen | Refusal]]:
    while batch := list(islice(found, ROWS_A_UNIT)):
        yield [row for row in batch if row is not None]
