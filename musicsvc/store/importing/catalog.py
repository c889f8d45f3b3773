"""`import catalog`: a file's rows become artists, albums and tracks, a few hundred in each unit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.binding import savepoint
from musicsvc.store.importing import albums, artists, rows, tracks
from musicsvc.store.importing.batch import Batch, Memory, Scope
from musicsvc.store.importing.batches import cells, left_off, pieces, take_turn
from musicsvc.store.importing.bounds import ExceededError
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.summary import Refusal, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.readers import Reader, Record
    from musicsvc.store.importing.rows import Row


# After so many attempts all rows of a full album are refused: else each might lose a single one.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Options:
    """How the file is read: `pairs` are `column=field`, `blanks` are texts that stand for an empty cell."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    manager: str | None = None
    dry_run: bool = False


def run(store: Store, reader: Reader, options: Options, *, now: int, told: Callable[[Summary], None]) -> Summary:
    """Import the file; `told` hears of every batch. What is refused is listed, the rest goes in.

    Raises Failure where the file breaks off; whole batches before that stay, and a second run goes on from there.
    """
    columns = Columns(rows.FIELDS, options.pairs, rows.SEVERAL)
    if reader.columns is not None:
        columns.check(reader.columns, rows.REQUIRED)
    summary = Summary(options.dry_run, unused=columns.unused(reader.columns or []))
    scope = Scope(_manager(store, options.manager), now, options.dry_run)
    memory = Memory()
    through = 0
    try:
        for parsed in pieces(_parsed(reader, columns, options.blanks, summary)):
            piece = [row for row in parsed if row is not None]
            batch = _put(store, piece, scope, memory)
            memory.absorb(batch)
            _add(summary, batch, piece)
            through = summary.rows
            told(summary)
    except Failure as failure:
        raise Failure(failure.here + left_off(through, dry_run=options.dry_run)) from None
    summary.refused.sort()
    return summary


def _manager(store: Store, email: str | None) -> int | None:
    return None if email is None else store.read(lambda: int(users.by_email(email).id)).result()


def _parsed(reader: Reader, columns: Columns, blanks: Sequence[str], summary: Summary) -> Iterator[Row | None]:
    """The rows that can go in, None for each that is refused."""
    for record in reader:
        summary.rows += 1
        yield _row(record, columns, blanks, summary)


def _row(record: Record, columns: Columns, blanks: Sequence[str], summary: Summary) -> Row | None:
    if record.fault is not None:
        summary.counts["tracks"].refused += 1
        summary.refused.append(Refusal(record.line, record.fault))
        return None
    held = cells(record, columns, blanks)
    summary.notes["playlists_ignored"] += any(held.get(name) for name in rows.LATER)
    try:
        return rows.parse(record.line, held)
    except rows.RefusedError as refused:
        summary.counts[refused.kind].refused += 1
        summary.refused.append(Refusal(record.line, str(refused)))
        return None


def _put(store: Store, piece: list[Row], scope: Scope, memory: Memory) -> Batch:
    def unit() -> Batch:
        if not scope.dry_run:
            take_turn()
        refused: dict[int, Refusal] = {}
        for attempt in count():
            batch = Batch(scope, memory, refused, strict=attempt >= ATTEMPTS)
            try:
                with savepoint():
                    _resolve([row for row in piece if row.line not in refused], batch)
            except ExceededError as exceeded:
                refused |= exceeded.refused
            else:
                break
        return batch

    return (store.read(unit) if scope.dry_run else store.write(unit)).result()


def _resolve(piece: list[Row], batch: Batch) -> None:
    ids = artists.resolve(piece, batch)
    tracks.resolve(piece, ids, albums.resolve(piece, ids, batch), batch)


def _add(summary: Summary, batch: Batch, piece: Iterable[Row]) -> None:
    summary.counts["albums"].refused += len(batch.refused)
    summary.refused += batch.refused.values()
    for kind, counts in batch.counts.items():
        summary.counts[kind].add(counts)
    summary.notes += batch.notes
    summary.notes["differing"] += len(batch.differing)
    for row in piece:
        if row.line not in batch.refused:
            summary.notes.update(row.notes)
