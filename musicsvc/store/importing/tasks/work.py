"""Do what the queue asks for: check an uploaded file, import it, or undo an import."""

import re
import time
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from musicsvc.clock import Clock
from musicsvc.errors import Conflict, Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import refused_rows, runner
from musicsvc.store.importing.catalog import catalog
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files import histories, readers
from musicsvc.store.importing.files.records import Limits, Reader, UnclearError
from musicsvc.store.importing.refused_rows import RefusedRows
from musicsvc.store.importing.runner import ImportOptions, Kind, Pace
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.queue import StoppedError
from musicsvc.store.importing.tasks.uploads import KINDS, Excerpt, Place, refused_name, tidy
from musicsvc.store.importing.undoing import runs, undo, wording
from musicsvc.store.models import ImportTask
from musicsvc.store.security.security_events import Actor, Administrator
from musicsvc.wording import quantity

MOST_ROWS = 1_000_000
TOO_MANY = f"The file has more than {MOST_ROWS:,} rows. Split it, or ask the operator to import it."
GONE = "The file is not there any more. Upload it again."
BROKEN = "An internal error occurred. Report it to the operator of this service."
EMPTY = "The file has no rows. Remove it, and upload one that has."
HISTORY = "The file is a listening history. Remove it, and upload it as one of plays."
STOPPING = "The service stops."
CONTINUE = " Continue the import when it is back: rows that are in are not added twice."
SHARED = Pace(rows=40, trial=0.25, rest=2.0)
BEAT = 1.0  # seconds between two records of the progress
LARGEST_TEXT = 512 * 1024 * 1024  # bytes, unpacked
LARGEST_HISTORY = 32 * 1024 * 1024  # bytes, unpacked
CPU = 600  # seconds, for a file that the limited program reads
MOST_REASONS = 20
REMEDIES = {
    "say which with --date-format DD/MM/YYYY or --date-format MM/DD/YYYY": "choose how dates are written",
    "--create-missing creates it": "choose to create what is missing",
    " with --divide": "",
    " with --listener": "",
    " with --playlist": "",
    " (run: musicsvc import playlists)": "; to import them, upload the file once more as playlists",
    " (--strict)": "",
    "set by --map": "as you chose",
    ", which --map names": "",
    " Leave out --sheet.": "",
    " Leave out --encoding.": "",
    ", or leave out --encoding": "",
}
# Names of fields, and how people write them.
NAMES = {
    name: name.removesuffix("_ms").replace("_", " ") for kind in KINDS.values() for name in kind.fields if "_" in name
}
NAMES |= {name: name.upper() for name in ("isrc", "upc", "bpm")}
NAME = re.compile(rf"\b({'|'.join(NAMES)})\b")
Report = dict[str, Any]


class Worker:
    """Works on the tasks of a place, one after the other."""

    def __init__(self, store: Store, place: Place, clock: Clock, is_stopping: Callable[[], bool]) -> None:
        self.store, self.clock, self.is_stopping = store, clock, is_stopping
        self._place = place

    def settle(self) -> None:
        """Stop the tasks that no process works on any more, and delete the files that nobody needs."""
        tasks = self.store.read(partial(queue.unsettled, self._place.name, self.clock.now())).result()
        for user in {*self._place.users(), *tasks}:
            try:
                with self._place.locked(user) as folder:
                    tidy(folder, self._settle(user))
            except Conflict:  # in use
                continue

    def _settle(self, user: int) -> list[str]:
        return self.store.write(partial(queue.settle, user, self._place.name, self.clock.now())).result()

    def work(self) -> bool:
        """Do the oldest task that waits and that no other process does. Return False if there is none."""
        for task in self.store.read(partial(queue.waiting, self._place.name)).result():
            try:
                with self._place.locked(task.user) as folder:
                    if self.store.write(partial(queue.claim, task.id)).result():
                        _Task(self, task, folder).perform()
                    tidy(folder, self._settle(task.user))
                    return True
            except Conflict:  # another process works for this account
                continue
        return False


class _Task:
    """One running task."""

    def __init__(self, worker: Worker, task: ImportTask, folder: Path) -> None:
        self._store = worker.store
        self._task = task
        self._folder = folder
        self._path = folder / task.stored_as
        self._now = worker.clock.now()
        self._is_stopping = worker.is_stopping
        self._options = queue.options_of(task.options)
        self._sheet = self._options.pop("sheet", None)
        self._encoding = self._options.pop("encoding", None)
        self._run: int | None = task.run
        self._percent = 0
        self._beat = 0.0
        self._limits = Limits(LARGEST_TEXT, LARGEST_HISTORY, CPU, self._heed)

    def perform(self) -> None:
        steps = {queue.CHECK: self._check, queue.IMPORT: self._import, queue.UNDO: self._undo}
        report = queue.options_of(self._task.report) | {"problem": BROKEN}
        state = queue.STOPPED
        try:
            report |= {"problem": None, **steps[self._task.step]()}
            state = queue.DONE
        except Failure as failure:
            report |= {"problem": self._plain(failure), "again": isinstance(failure, StoppedError)}
        finally:
            finish: Callable[[], None] = partial(queue.finish, self._task.id, state, report, self._run)
            self._store.write(self._store.counted(finish, self._task.user)).result()
        if self._task.step == queue.IMPORT and state == queue.DONE:
            self._path.unlink(missing_ok=True)

    def _plain(self, failure: Failure) -> str:
        """Return the message of a failure without remedies of the command line and the name of the file."""
        message, path = failure.what if isinstance(failure, UnclearError) else failure.message, str(self._path)
        plain = message.removeprefix(f"{path}: ").replace(path, "the file")
        return _in_words(plain[:1].upper() + plain[1:])

    def _heed(self) -> None:
        """Raise StoppedError if the task must stop. Call outside of transactions."""
        self._go_on(self._percent, 100, self._run)

    def _go_on(self, position: float, size: float, run: int | None) -> None:
        """Record the progress, at most once a second. Raises StoppedError if the task must stop."""
        if self._is_stopping():
            raise StoppedError(STOPPING + CONTINUE * (self._task.step == queue.IMPORT))
        if time.monotonic() - self._beat < BEAT and run == self._run:
            return
        self._run = run
        self._percent = min(99, int(100 * position / (size or 1)))
        self._store.write(partial(queue.beat, self._task.id, self._percent, run), counters_only=True).result()
        self._beat = time.monotonic()

    def _open(self) -> Reader:
        """Open the file. Raises StoppedError if the task must stop."""
        self._go_on(0, 1, self._run)
        if not self._path.is_file():
            raise Failure(GONE)
        if self._task.kind == "plays":
            mapped = bool(self._options.get("pairs"))
            reader = histories.open_file(self._path, None, self._sheet, self._limits, self._encoding, mapped=mapped)
        else:
            reader = readers.open_file(self._path, None, self._sheet, self._limits, self._encoding)
        reader.name = self._task.file
        return reader

    def _import_options(self, *, dry_run: bool) -> ImportOptions:
        user = self._store.read(partial(users.get, self._task.user)).result()
        return ImportOptions(**self._options, user=user.email, dry_run=dry_run)

    def _read(self, reader: Reader, kind: Kind[Any]) -> Report:
        """Import the file, write its refused rows beside it, and return the result."""
        rows = RefusedRows(reader)

        def on_progress(summary: ImportSummary) -> None:
            rows.add(summary)
            if summary.rows > MOST_ROWS:
                raise Failure(TOO_MANY)
            self._go_on(reader.position, reader.size, summary.run)

        try:
            summary = runner.run(
                self._store, rows, kind, now=self._now, on_progress=on_progress, pace=SHARED, actor="page"
            )
        finally:
            with (self._folder / refused_name(self._task.stored_as)).open("wb") as file:
                rows.write(file)
        return _result(summary)

    def _check(self) -> Report:
        """Try the first rows without writing them, and return what the page shows of the file."""
        options = self._import_options(dry_run=True)
        kind = KINDS[self._task.kind](options)
        report: Report = {"problem": None, "twins": 0}
        with Excerpt(self._open()) as excerpt:
            try:
                report |= self._read(excerpt, kind)
                _require_all(report, options)
                if report["read"] == report["refused"] and (not report["read"] or self._is_history()):
                    report["problem"] = HISTORY if report["read"] else EMPTY
            except StoppedError:
                raise
            except Failure as failure:
                is_other = isinstance(failure, UnclearError) and self._is_history()
                report["problem"] = HISTORY if is_other else self._plain(failure)
        report["columns"] = _columns(kind.columns, excerpt.names(), report.get("doubts", {}))
        if self._task.kind == "catalog" and not report["problem"]:
            found = catalog.artists_of_others(lambda: Excerpt(self._open(), self._heed), options, self._store)
            report["twins"] = found.names
        return report | {
            "is_history": excerpt.is_history,
            "rows": [*map(_cells, excerpt.table(kind.columns))],
            "more": excerpt.more,
            "sheets": [*excerpt.sheets],
            "encoding": excerpt.encoding,
        }

    def _is_history(self) -> bool:
        """Return True for a listening history that is to be imported as a catalog."""
        mapped = bool(self._options.get("pairs"))
        return self._task.kind == "catalog" and histories.is_history(self._path, None, self._limits, mapped=mapped)

    def _import(self) -> Report:
        if self._options.get("strict"):
            options = self._import_options(dry_run=True)
            with self._open() as reader:
                _require_all(self._read(reader, KINDS[self._task.kind](options)), options)
        with self._open() as reader:
            return self._read(reader, KINDS[self._task.kind](self._import_options(dry_run=False)))

    def _undo(self) -> Report:
        assert self._task.run is not None  # noqa: S101 - an undo has one
        go_on = partial(self._go_on, run=self._task.run)
        actor = self._store.read(partial(_require_undoable, self._task.run, self._task.user)).result()
        done = undo.undo(self._store, self._task.run, now=self._now, on_progress=go_on, actor=actor)
        what = wording.quantities({"play": done.plays} | done.counts)
        names = self._store.read(partial(wording.names_of, done.kept)).result()
        return {"done": what, "kept": wording.kept_lines(done.kept, "Kept", names)}


def _require_undoable(run: int, user: int) -> Actor:
    """Return who undoes an import. Raises Conflict if its account has lost the artists while the undo waited."""
    if runs.account_of(run) != user:
        return Administrator(user)
    if not users.get(user).admin:
        runs.require_own(run, user)
    return "page"


def _in_words(line: str) -> str:
    """Replace the remedies of the command line, and names of fields, in a message."""
    for option, remedy in REMEDIES.items():
        line = line.replace(option, remedy)
    return NAME.sub(lambda found: NAMES[found[0]], line)


def _columns(columns: Columns, names: list[str], doubts: dict[str, str]) -> list[Report]:
    """Return what the page shows of the columns. `doubts`: what is wrong with cells, by column or field."""
    known, guesses = columns.unmapped(), {each.column: each for each in columns.guesses}
    return [
        {
            "column": name,
            "field": (field := columns.field(name)),
            "guess": known.get(name),
            "written": name in guesses and guesses[name].written,
            "why": name in guesses and _in_words(guesses[name].why),
            "doubt": doubts.get(name) or doubts.get(field or ""),
            "signs": columns.dividing.signs(name),
        }
        for name in names
    ]


def _cells(row: list[Any]) -> list[Any]:
    return [each if isinstance(each, str) else (each[0], _in_words(each[1])) for each in row]


def _require_all(report: Report, options: ImportOptions) -> None:
    """Raise Failure if the file is imported as a whole or not at all, and something of it cannot be."""
    if options.strict and report["objections"]:
        raise Failure(f"Nothing is imported, as not everything can be: {', '.join(report['objections'])}.")


def _doubts(summary: ImportSummary) -> dict[str, str]:
    """Return what is wrong with cells, by column that is not read, and by field of which cells were left out."""
    found: dict[str, str] = {}
    for (name, reason), cells in summary.left_out.items():
        found.setdefault(name, f"{quantity(cells.count, 'cell')} left out: {_in_words(reason)}")
    unread = {each.column: _in_words(f"not read: {each.field} {each.reason}") for each in summary.unread}
    return found | unread


def _result(summary: ImportSummary) -> Report:
    """Return the result of an import as the page shows it."""
    reasons = [_in_words(line) for line in islice(refused_rows.lines(summary.refused), MOST_REASONS)]
    return {
        "read": summary.rows,
        "counts": {kind: astuple(counts) for kind, counts in summary.counts.items()},
        "refused": len(summary.refused),
        "reasons": reasons,
        "more_reasons": len({(each.member, each.kind) for each in summary.refused}) - len(reasons),
        "notes": [
            *(_in_words(remark.what) for remark in summary.readings),
            *map(_in_words, summary.account()),
        ],
        "doubts": _doubts(summary),
        "objections": summary.objections,
        "at_most": summary.at_most,
        "artists": summary.new_artists,
    }
