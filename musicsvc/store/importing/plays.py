"""`import plays`: a file's rows become plays, a few thousand in each unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.importing import listen_rows, matching
from musicsvc.store.importing.batches import cells, left_off
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.create_missing import Scope, dry_ids
from musicsvc.store.importing.ingest import Batches, refusal
from musicsvc.store.importing.seen_keys import Seen
from musicsvc.store.importing.summary import Counts, Refusal, Summary
from musicsvc.store.plays.rollups import monthly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.listen_rows import Listen
    from musicsvc.store.importing.readers import Reader

ROWS_A_UNIT = 2000  # some 50 ms, so that a running server hardly waits
SUBJECTS_A_FOLD = 2000
KINDS = ("artists", "tracks", "plays")
NO_LISTENER = "Say whose plays these are: --listener NAME, or --map COLUMN=listener."
NO_TRACK = (
    "No column tells the track. Say which does with --map COLUMN=FIELD: track_id, external_id, or artist and track."
)


@dataclass(frozen=True, slots=True)
class Options:
    """How the file is read: `pairs` are `column=field`, `blanks` are texts that stand for an empty cell.

    `listener` is who listened where a row does not say, `manager` the e-mail of the account for whom things are made.
    """

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    listener: str | None = None
    manager: str | None = None
    create_missing: bool = False
    dry_run: bool = False


def run(store: Store, reader: Reader, options: Options, *, now: int, told: Callable[[Summary], None]) -> Summary:
    """Import the file; `told` hears of every batch. What is refused is listed, the rest goes in.

    Raises Failure where the file breaks off; whole batches before that stay, and a second run goes on from there.
    """
    columns = Columns(listen_rows.FIELDS, options.pairs, listen_rows.SEVERAL)
    if reader.columns is not None:
        _check(columns, reader.columns, options)
    if options.listener is not None and not 1 <= len(options.listener.strip()) <= listen_rows.LISTENER_LENGTH:
        raise Failure(f"The listener's name must have 1 to {listen_rows.LISTENER_LENGTH} characters.")
    summary = Summary(options.dry_run, columns.unused(reader.columns or []), counts={kind: Counts() for kind in KINDS})
    manager = None if options.manager is None else store.read(partial(_manager, options.manager)).result()
    catalog = store.read(partial(matching.read, manager)).result()
    with Seen() as seen:
        batches = Batches(store, catalog, Scope(manager, now, dry_ids() if options.dry_run else None), seen)
        try:
            for piece in _pieces(_parsed(reader, columns, options, summary)):
                batches.put(piece, summary, create_missing=options.create_missing)
                told(summary)
        except Failure as failure:
            through = summary.rows - summary.rows % ROWS_A_UNIT
            raise Failure(failure.here + left_off(through, dry_run=options.dry_run)) from None
    while not options.dry_run and store.write(partial(monthly.roll_up, SUBJECTS_A_FOLD)).result():
        pass
    return summary


def _check(columns: Columns, names: list[str], options: Options) -> None:
    """Failure where no row of a file with these columns can go in."""
    columns.check(names, ("played_at",))
    found = {columns.field(name) for name in names}
    if not (found & {"track_id", "external_id"} or found >= {"artist", "track"}):
        raise Failure(NO_TRACK)
    if "listener" not in found and options.listener is None:
        raise Failure(NO_LISTENER)


def _manager(email: str) -> int:
    return int(users.by_email(email).id)


def _parsed(reader: Reader, columns: Columns, options: Options, summary: Summary) -> Iterator[Listen | Refusal | None]:
    """The rows that can go in, why others cannot, and None for each that is no play at all."""
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
                yield listen_rows.parse(record, cells(record, columns, options.blanks), listener)
            except listen_rows.RefusedError as refused:
                yield refusal(record, str(refused))


def _pieces(found: Iterator[Listen | Refusal | None]) -> Iterator[list[Listen | Refusal]]:
    while piece := list(islice(found, ROWS_A_UNIT)):
        yield [row for row in piece if row is not None]
