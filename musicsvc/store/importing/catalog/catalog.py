"""`import catalog`: import artists, albums and tracks from a file, a few hundred rows per transaction."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.binding import savepoint
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.batches import in_batches, read_cells, resume_hint
from musicsvc.store.importing.catalog import albums, artists, rows, tracks
from musicsvc.store.importing.catalog.batch import Batch, ImportMemory, ImportScope
from musicsvc.store.importing.catalog.bounds import BoundsExceededError
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.summary import Counts, ImportSummary, Progress, Refusal
from musicsvc.store.importing.undoing import runs

# An attempt may find only one row too many per album. After this many, AlbumBounds refuses all further rows of it.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Import options. `pairs` map columns to fields (`column=field`). Cells with a text in `blanks` count as empty."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    manager: str | None = None
    dry_run: bool = False


def run(store: Store, reader: Reader, options: CatalogOptions, *, now: int, on_progress: Progress) -> ImportSummary:
    """Import the file and return a summary. Raises Failure for a damaged file. Rows before the damage stay imported."""
    columns = Columns(rows.FIELDS, options.pairs, rows.SEVERAL)
    if reader.columns is not None:
        columns.check(reader.columns, rows.REQUIRED)
    summary = ImportSummary(options.dry_run, unused=columns.unused(reader.columns or []))
    manager = _manager(store, options.manager)
    through = 0
    with runs.recording(store, "catalog", reader, summary, user=manager, now=now) as run_id:
        scope, memory = ImportScope(manager, now, options.dry_run, run_id), ImportMemory()
        on_progress(summary)
        try:
            for records in in_batches(_parse(reader, columns, options.blanks, summary)):
                valid = [row for row in records if row is not None]
                batch = _import_batch(store, valid, scope, memory, summary)
                memory.absorb(batch)
                _add(summary, batch, valid)
                through = summary.rows
                on_progress(summary)
        except Failure as failure:
            raise Failure(failure.here + resume_hint(through, dry_run=options.dry_run)) from None
    summary.refused.sort()
    return summary


def _manager(store: Store, email: str | None) -> int | None:
    return None if email is None else store.read(lambda: int(users.by_email(email).id)).result()


def _parse(
    reader: Reader, columns: Columns, blanks: Sequence[str], summary: ImportSummary
) -> Iterator[CatalogRow | None]:
    """Validate each record. Yield its row, or None if it is refused. Counts and refusals are added to `summary`."""
    for record in reader:
        summary.rows += 1
        yield _row(record, columns, blanks, summary)


def _row(record: Record, columns: Columns, blanks: Sequence[str], summary: ImportSummary) -> CatalogRow | None:
    if record.fault is not None:
        summary.counts["tracks"].refused += 1
        summary.refused.append(Refusal(record.line, record.fault))
        return None
    held = read_cells(record, columns, blanks)
    summary.notes["playlists_ignored"] += any(cell for name in rows.LATER for cell in held.get(name, ()))
    try:
        return rows.parse(record.line, held)
    except rows.RefusedError as refused:
        summary.counts[refused.kind].refused += 1
        summary.refused.append(Refusal(record.line, str(refused)))
        return None


def _import_batch(
    store: Store, valid: list[CatalogRow], scope: ImportScope, memory: ImportMemory, summary: ImportSummary
) -> Batch:
    def unit() -> Batch:
        runs.begin_batch(scope.run)
        refused: dict[int, Refusal] = {}
        for attempt in count():
            batch = Batch(scope, memory, refused, strict=attempt >= ATTEMPTS)
            try:
                with savepoint():
                    _resolve([row for row in valid if row.line not in refused], batch)
            except BoundsExceededError as exceeded:
                refused |= exceeded.refused
            else:
                break
        runs.record_counts(scope.run, summary.rows, summary.totals(_counts(batch)))
        return batch

    return (store.read(unit) if scope.dry_run else store.write(unit)).result()


def _resolve(valid: list[CatalogRow], batch: Batch) -> None:
    ids = artists.resolve(valid, batch)
    tracks.resolve(valid, ids, albums.resolve(valid, ids, batch), batch)


def _add(summary: ImportSummary, batch: Batch, valid: Iterable[CatalogRow]) -> None:
    summary.refused += batch.refused.values()
    summary.counts = summary.totals(_counts(batch))
    summary.notes += batch.notes
    summary.notes["differing"] += len(batch.differing)
    for row in valid:
        if row.line not in batch.refused:
            summary.notes.update(row.notes)


def _counts(batch: Batch) -> dict[str, Counts]:
    """Return the counts of a batch by kind, without the rows that were refused when they were read."""
    found = dict(batch.counts)
    for refusal in batch.refused.values():
        found["tracks" if refusal.kind == tracks.ISRC_TAKEN else "albums"] += Counts(refused=1)
    return found
