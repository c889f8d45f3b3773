"""Read workbooks, Parquet files and archives in a process of the limited program."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from musicsvc import scratch
from musicsvc.errors import Failure
from musicsvc.limited import Pause
from musicsvc.limited.process import Broken, Limited
from musicsvc.store.importing.files import unpacking
from musicsvc.store.importing.files.lines import unreadable
from musicsvc.store.importing.files.records import (
    NONE,
    Limits,
    Reader,
    Remark,
    Step,
    check_headings,
    headings,
    is_quoted,
)
from musicsvc.store.importing.files.unpacking.rows import to_record
from musicsvc.wording import cut, unquoted

TOO_MUCH = "needs more than a gigabyte of memory or a minute to read."
DAMAGED = "is damaged: it cannot be read."
PROGRAM = "cannot be read: the program that reads such files does not work here. It has to be installed again."
REMEDIES = {
    "workbooks": "Save the sheet as CSV and import that.",
    "parquet": "Write it with smaller row groups.",
    "histories": "Split it, or unpack it and import its files one by one.",
    "kinds": "Import the files in it one by one.",
}
DAMAGES = {
    "workbooks": "is damaged or has a password. Open it in a spreadsheet program, and save the sheet as CSV.",
}


class Process:
    """The limited program at work on a file: `steps` yields what it prints. Raises Failure if it cannot be read."""

    def __init__(self, task: str, path: Path, limits: Limits = NONE, **options: Any) -> None:
        """Begin the program. Raises Failure if the file cannot be opened."""
        self._task = task
        self._path = path
        try:
            path.open("rb").close()
        except OSError as error:
            raise unreadable(path, error) from None
        self._open = ExitStack()
        # Here and not there, because it stays behind a process that is killed.
        folder = self._open.enter_context(scratch.folder(None))
        self.limited = self._open.enter_context(closing(Limited(f"{unpacking.__name__}.{task}")))
        self._parts = self.limited.ask(str(path), str(folder), options, seconds=limits.seconds)

    def steps(self) -> Iterator[Any]:
        """Yield what the process prints, and pauses. Raises Failure for a fault, or if the process ends early."""
        try:
            yield from self._parts
        except Broken as broken:
            raise self._failure(str(broken)) from None

    def _failure(self, fault: str) -> Failure:
        if fault.startswith("damaged"):
            return Failure(f"{self._path} {DAMAGES.get(self._task, DAMAGED)}")
        return Failure(f"{self._path} {PROGRAM if fault == 'program' else f'{TOO_MUCH} {REMEDIES[self._task]}'}")

    def close(self) -> None:
        """End the process, and delete its temporary files."""
        self._open.close()


def ask(task: str, path: Path, limits: Limits, **options: Any) -> Any:
    """Return the first thing that the limited program prints about a file."""
    with closing(Process(task, path, limits, **options)) as process:
        return _first(process.steps(), limits)


def _first(steps: Iterator[Any], limits: Limits) -> Any:
    for step in steps:
        if not isinstance(step, Pause):
            return step
        limits.heed()
    return {}


class LimitedReader(Reader):
    """Reads a file in a process of its own. `task`: a key of REMEDIES. Raises Failure if it cannot be read."""

    def __init__(self, task: str, path: Path, limits: Limits = NONE, **options: Any) -> None:
        self._process = Process(task, path, limits, **options)
        self._steps = self._process.steps()
        self._said: list[Remark] = []
        try:
            self._begin(path, _first(self._steps, limits))
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, about: Mapping[str, Any]) -> None:
        self.size = about["size"]
        self.columns = None
        self._is_quoted = False
        if (found := about["headings"]) is not None:
            self.columns = self._headings(path, found, about["line"])
        self.sheets, self.skipped = about.get("sheets", ()), about.get("skipped", ())

    def _headings(self, path: Path, found: list[str], line: int | None) -> list[str]:
        """Return the names of the columns. `line`: of the headings, or None if they are the schema of the file."""
        where = "the schema" if line is None else f"row {line}"
        if line is None:
            check_headings(found, lambda what: Failure(f"{path}: {where} {what}."))
            return found
        self._is_quoted = is_quoted(found)
        plain = [*map(unquoted, found)] if self._is_quoted else found
        return headings(plain, lambda what: Failure(f"{path}: {where} {what}."))

    @property
    def remarks(self) -> Sequence[Remark]:
        first, *others = map(cut, self.sheets or [""])
        found = Remark(f"Read the sheet {first}, not {', '.join(others)}.", "To read another one, add --sheet NAME.")
        return [*([found] if others else ()), *super().remarks, *self._said]

    def steps(self) -> Iterator[Step]:
        for step in self._steps:
            if isinstance(step, Pause):
                yield step
            elif isinstance(step, dict):
                self._read = step["position"]
                self._said = [Remark(*each) for each in step.get("remarks", ())]
            else:
                if self.columns is not None:
                    self._read = step[0]
                record = to_record(step, self.columns)
                if self._is_quoted:
                    record = record._replace(values={name: _plain(cell) for name, cell in record.values.items()})
                yield record
        self._read = self.size

    def close(self) -> None:
        """End the process."""
        self._process.close()


def _plain(cell: Any) -> Any:
    return unquoted(cell) if isinstance(cell, str) else cell
