"""The runner of all imports: read a file, write its rows in batches, count them, and record what the import did.

A kind of import says which columns it reads, parses a row, and writes a batch of rows in a transaction. A dry run does
the same in transactions that are rolled back.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from musicsvc.errors import Failure
from musicsvc.limited import Pause
from musicsvc.store.accounts import divide_rules, users
from musicsvc.store.engine import name_index
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.columns import Cells, Columns, Field
from musicsvc.store.importing.dividing import Rules
from musicsvc.store.importing.files.records import Reader, Record, Remark, Step, UnclearError
from musicsvc.store.importing.summary import Counts, ImportSummary, LeftOutCell, Progress, Refusal, SharedUpc
from musicsvc.store.importing.undoing import runs
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import cut

Row = TypeVar("Row")
LONGEST_TRIAL = 3.0  # seconds for which a dry run keeps others from writing
ABSENT = "No row has the column {!r}, which --map names."
CHANGED = "The file or the catalog is not as it was when it was checked (--strict)."
PAUSE = 0.1  # seconds between two transactions of a dry run, twice as long as a writer waits before it tries again


class Pace(NamedTuple):
    """The share of the machine that an import takes.

    `rows`: the most rows of a transaction. `trial`: the most seconds of a transaction of a dry run. None: as the import
    chooses. `rest`: the seconds to wait after each second of work.
    """

    rows: int | None = None
    trial: float | None = None
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of imports. `pairs` map columns to fields (`column=field`). Cells with a text in `blanks` are empty."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    date_format: str | None = None  # a key of columns.DATE_FORMATS
    divide: Sequence[str] = ()  # rules: see dividing.rules
    artist: str | None = None  # of tracks in rows that name none
    playlist: str | None = None  # the name, in rows that name none
    user: str | None = None  # the e-mail address of the manager of new artists and tracks, or of the playlists' owner
    listener: str | None = None  # of plays in rows that name none
    create_missing: bool = False  # accounts of follows, tracks of plays
    public: bool = False  # whether new playlists are public
    dry_run: bool = False
    strict: bool = False  # to end the import before anything of the file is not taken


class Scope(NamedTuple):
    """Values for all rows of an import: the id of the account of `--user` (None without one), the import's id.

    `actor`: the part of the service that security events name.
    """

    user: int | None
    now: int
    run: int
    actor: Actor


class RefusedError(Exception):
    """A row is refused. `counted`: the kind of item that counts as refused, if it is not the usual one of the import.

    `names`: the faulty values. `notes`: keys of NOTES that count although the row is refused.
    """

    def __init__(
        self, reason: str, counted: str | None = None, names: tuple[str, ...] = (), notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason)
        self.counted = counted
        self.names = names
        self.notes = notes

    def at(self, record: Any, usual: str) -> Refusal:
        """Return the refusal of a row, given as its Record or as parsed. `usual`: what counts as refused by default."""
        member = getattr(record, "member", None)
        return Refusal(record.line, str(self), self.names, member, self.counted or usual, self.notes)


@dataclass(slots=True)
class Outcome:
    """The result of writing a batch. `refused`: refused rows by their position in the batch.

    `remember` is called when the batch is stored, so that later batches know of it.
    """

    counts: dict[str, Counts] = field(default_factory=dict)  # without refused rows
    refused: dict[int, RefusedError] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    artists: Sequence[str] = ()  # the names of those that it creates
    left_out: list[LeftOutCell] = field(default_factory=list)
    refusals: Sequence[Refusal] = ()  # of the whole batch
    remember: Callable[[], None] = lambda: None


class Kind(ABC, Generic[Row]):
    """A kind of import, for one file."""

    name: str
    counted: tuple[str, ...]  # the kinds of items in the summary
    refused_as: str  # the kind of item that counts as refused
    fields: Mapping[str, Field]
    synonyms: Mapping[str, str]  # headings of columns for fields
    required: Mapping[str, str]  # fields that a column must fill, and what else the user can do
    rows_a_unit = 5000  # or a piece of the file; 0.3 to 0.5 s of a catalog, for which other writers wait

    def __init__(self, options: ImportOptions) -> None:
        """Raise Invalid for a malformed or conflicting `--map`."""
        self.options = options
        self.columns = Columns(self.fields, options.pairs, self.synonyms, options.date_format, options.divide)

    def check(self, names: list[str]) -> None:
        """Raise Failure unless the columns of the file (`names`) or options fill all required fields."""
        given = {each for each in self.required if getattr(self.options, each, None) is not None}
        self.columns.check(names, {each: also for each, also in self.required.items() if each not in given})

    def load(self, user: int | None) -> None:
        """Load what all batches need from the database, in a read transaction."""

    def forget(self) -> None:
        """Forget all batches, at the beginning and after a transaction of a dry run was rolled back."""

    @abstractmethod
    def parse(self, record: Record, cells: Cells) -> Row | str:
        """Validate a row, given as its parsed cells, or return why to skip it (a key of NOTES). Raises RefusedError."""

    @abstractmethod
    def write(self, batch: Sequence[Row], scope: Scope) -> Outcome:
        """Write a batch of valid rows. Call in a write transaction, which may run again: change nothing else."""

    def shared_upcs(self) -> list[SharedUpc]:
        """Return the UPCs of the file that albums with several names have."""
        return []

    def finish(self, store: Store) -> None:
        """Do what remains after the last batch of an import that is no dry run."""

    def close(self) -> None:
        """Release temporary files."""


NO_ROW = (Refusal, str)
Batch = list[Row | Refusal | str]  # valid rows, invalid rows, and notes (keys of NOTES) on rows that are skipped


def run(
    store: Store,
    reader: Reader,
    kind: Kind[Any],
    *,
    now: int,
    on_progress: Progress,
    pace: Pace = Pace(),  # noqa: B008 - it is immutable
    actor: Actor = "cli",
) -> ImportSummary:
    """Import the file and return a summary. Raises Failure for a damaged file. Rows before the damage stay imported.

    `on_progress` may raise an exception to end the import. `actor`: the part of the service that security events name.
    """
    with closing(kind):
        user, kept = store.read(partial(_account, kind)).result()
        records = kind.columns.fit(reader, kept)
        if reader.columns is not None:
            _check(kind, reader, reader.columns)
        unused = kind.columns.unused(reader.columns or ())
        counts = {each: Counts() for each in kind.counted}
        summary = ImportSummary(kind.options.dry_run, unused, kind.columns.guesses, counts=counts)
        summary.unread = [*kind.columns.unread.values()]
        store.read(partial(kind.load, user)).result()
        runner = _Runner(store, kind, user, now, actor, summary, on_progress, pace)
        start = partial(runs.start, kind.name, reader.name, user, summary.counts, now, actor)
        batches = _batches(_parsed(records, kind, summary), min(kind.rows_a_unit, pace.rows or kind.rows_a_unit))
        if summary.dry_run:
            runner.try_all(batches, start)
        else:
            if found := kind.columns.dividing.chosen:
                store.write(partial(divide_rules.keep, user or 0, found, now)).result()
            runner.write_all(batches, start)
            kind.finish(store)
        summary.shared_upcs = kind.shared_upcs()
        summary.unused = kind.columns.unused()
        summary.readings = [*reader.remarks, *(Remark(ABSENT.format(cut(each))) for each in kind.columns.absent)]
    return summary


def _check(kind: Kind[Any], reader: Reader, names: list[str]) -> None:
    """Raise Failure as `Kind.check`, which also names the sheets of a workbook that were not read."""
    try:
        kind.check(names)
    except UnclearError as unclear:
        sheets = [*map(cut, reader.sheets)]
        if len(sheets) < 2:  # noqa: PLR2004 - the one that was read
            raise
        also = f"{unclear.what} The sheet {sheets[0]} was read, not {', '.join(sheets[1:])}."
        raise UnclearError(also, f"{unclear.remedy} To read another sheet, add --sheet NAME.") from None


def _account(kind: Kind[Any]) -> tuple[int | None, Rules]:
    """Return the id of the account of `--user`, and the rules that are kept for it."""
    user = None if kind.options.user is None else int(users.by_email(kind.options.user).id)
    return user, divide_rules.of_account(user or 0)


def _parsed(steps: Iterable[Step], kind: Kind[Row], summary: ImportSummary) -> Iterator[Row | Refusal | str | Pause]:
    """Validate the rows. Add what is said of their cells to the summary: each row is read once, also in a dry run."""
    for record in steps:
        if isinstance(record, Pause):
            yield record
        elif record.note is not None:
            yield record.note
        elif record.fault is not None:
            yield Refusal(record.line, record.fault, (), record.member, kind.refused_as)
        else:
            cells = kind.columns.read(record.values, kind.options.blanks)
            if cells.notes:
                summary.notes.update(cells.notes)
            try:
                row = kind.parse(record, cells)
            except RefusedError as refused:
                yield refused.at(record, kind.refused_as)
                continue
            if cells.left_out and not isinstance(row, str):
                summary.leave_out((record.line, *each) for each in cells.left_out)
            yield row


def _batches(items: Iterable[Row | Refusal | str | Pause], size: int) -> Iterator[Batch[Row]]:
    """Yield batches of at most `size` rows, and of what was read up to a pause, which may be nothing."""
    batch: Batch[Row] = []
    for item in items:
        if not isinstance(item, Pause):
            batch.append(item)
        if isinstance(item, Pause) or len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class _RolledBackError(Exception):
    """Ends a transaction of a dry run. `finished`: it has reached the end of the file."""

    def __init__(self, *, finished: bool) -> None:
        self.finished = finished


@dataclass(slots=True)
class _Runner(Generic[Row]):
    """Writes batches, and adds the results to the summary."""

    store: Store
    kind: Kind[Row]
    user: int | None
    now: int
    actor: Actor
    summary: ImportSummary
    on_progress: Progress
    pace: Pace

    def write_all(self, batches: Iterator[Batch[Row]], start: Callable[[], int]) -> None:
        """Write each batch in a transaction."""
        self.kind.forget()
        with runs.recording(self.store, start, self.now, self.actor) as run:
            self.summary.run = run
            self.on_progress(self.summary)
            began = time.monotonic()
            for batch in batches:
                if not batch:
                    self.on_progress(self.summary)
                    continue
                outcome = self.store.write(partial(self._write, batch, run)).result()
                outcome.remember()
                self._add(batch, outcome)
                time.sleep(self.pace.rest * (time.monotonic() - began))
                began = time.monotonic()

    def try_all(self, batches: Iterator[Batch[Row]], start: Callable[[], int]) -> None:
        """Write the batches in transactions of at most LONGEST_TRIAL seconds, each of which is rolled back."""
        self.on_progress(self.summary)
        taken: list[Batch[Row]] = []  # from `batches`, not in the summary yet
        finished = False
        while not finished:
            self._await(batches, taken)
            done: list[Outcome] = []
            try:
                self.store.write(partial(self._try_some, batches, taken, done, start)).result()
            except _RolledBackError as end:
                finished = end.finished
            finally:
                self.summary.at_most |= bool(self.summary.rows and done)
                for batch, outcome in zip(taken, done, strict=False):
                    self._add(batch, outcome)
            del taken[: len(done)]
            if not finished:
                time.sleep(max(PAUSE, self.pace.rest * (self.pace.trial or 0)))

    def _await(self, batches: Iterator[Batch[Row]], taken: list[Batch[Row]]) -> None:
        """Read until there is a row to try, outside of a transaction: nobody waits for a file that is read slowly."""
        while not taken and (batch := next(batches, None)) is not None:
            if batch:
                taken.append(batch)
            else:
                self.on_progress(self.summary)

    def _try_some(
        self, batches: Iterator[Batch[Row]], taken: list[Batch[Row]], done: list[Outcome], start: Callable[[], int]
    ) -> None:
        """Write batches, those in `taken` first, and roll back. Add the results to `done`."""
        done.clear()
        self.kind.forget()
        run, began = start(), time.monotonic()
        for batch in chain(tuple(taken), _taking(batches, taken)):
            if batch:
                outcome = self._write(batch, run)
                outcome.remember()
                done.append(outcome)
                name_index.spell_noted()
            if time.monotonic() - began > (self.pace.trial or LONGEST_TRIAL):
                raise _RolledBackError(finished=False)
        raise _RolledBackError(finished=True)

    def _write(self, batch: Batch[Row], run: int) -> Outcome:
        """Write a batch, in a transaction, and record the counts of the import."""
        runs.begin_batch(run)
        rows = [each for each in batch if not isinstance(each, NO_ROW)]
        outcome = self.kind.write(rows, Scope(self.user, self.now, run, self.actor))
        refused = outcome.refusals = self._refused(batch, outcome)
        if self.kind.options.strict and not self.summary.dry_run and (refused or self.summary.objections):
            raise Failure(CHANGED)
        totals = self._totals(outcome.counts, refused)
        runs.record_counts(run, self.summary.rows + len(batch), totals)
        return outcome

    def _add(self, batch: Batch[Row], outcome: Outcome) -> None:
        refused = outcome.refusals
        self.summary.rows += len(batch)
        self.summary.counts = self._totals(outcome.counts, refused)
        self.summary.refused += refused
        self.summary.notes.update(each for each in batch if isinstance(each, str))
        self.summary.notes.update(note for each in refused for note in each.notes)
        self.summary.notes += outcome.notes
        self.summary.add_artists(outcome.artists)
        self.summary.leave_out(outcome.left_out)
        self.on_progress(self.summary)

    def _refused(self, batch: Batch[Row], outcome: Outcome) -> list[Refusal]:
        """Return the invalid rows of the batch, and those that were refused when it was written, in order."""
        found = []
        place = 0
        for each in batch if outcome.refused else [each for each in batch if isinstance(each, Refusal)]:
            if isinstance(each, Refusal):
                found.append(each)
            elif not isinstance(each, str):
                if refused := outcome.refused.get(place):
                    found.append(refused.at(each, self.kind.refused_as))
                place += 1
        return found

    def _totals(self, counts: Mapping[str, Counts], refused: Iterable[Refusal]) -> dict[str, Counts]:
        """Return the counts of the import so far plus those of a batch."""
        by_kind = Counter(each.counted for each in refused)
        return {
            kind: so_far + counts.get(kind, Counts()) + Counts(refused=by_kind[kind])
            for kind, so_far in self.summary.counts.items()
        }


def _taking(batches: Iterator[Batch[Row]], taken: list[Batch[Row]]) -> Iterator[Batch[Row]]:
    """Yield further batches. Those with rows are added to `taken`."""
    for batch in batches:
        if batch:
            taken.append(batch)
        yield batch
