"""Read workbooks, Parquet files and archives in a process with limits, which this module begins, watches and ends."""

import json
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import orjson

from musicsvc import scratch
from musicsvc.errors import Failure
from musicsvc.store.importing.files.lines import unreadable
from musicsvc.store.importing.files.records import (
    NONE,
    PIECE,
    Limits,
    Pause,
    Reader,
    Remark,
    Step,
    check_headings,
    headings,
    is_quoted,
)
from musicsvc.store.importing.files.unpacking.rows import to_record
from musicsvc.wording import cut, unquoted

PROGRAM = "musicsvc.store.importing.files.unpacking.process"
SILENCE = 60.0  # seconds without a row, after which the process ends
WAIT = 0.25  # seconds between two pauses
PIPE = 64 * 1024  # bytes
PATH = "\0"  # as the process writes the path of the file
TOO_MUCH = "needs more than a gigabyte of memory or a minute to read."
DAMAGED = "is damaged: it cannot be read."
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
        chosen = json.dumps(options | {"seconds": limits.seconds})
        # -P: modules of the working folder are not those that it imports.
        command = [sys.executable, "-P", "-m", PROGRAM, task, str(path), str(folder), chosen]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl+C ends this process, which then ends that one
        )
        self._open.callback(self._process.communicate)  # after the next one: the last comes first
        self._open.callback(self._process.kill)

    def steps(self) -> Iterator[Any]:
        """Yield what the process prints, and pauses. Raises Failure for a fault, or if the process ends early."""
        taken = 0
        for line in self._lines():
            if isinstance(line, Pause):
                yield line
                continue
            found = orjson.loads(line)
            if isinstance(found, dict):
                if "end" in found:
                    return
                if "failure" in found:
                    raise Failure(found["failure"].replace(PATH, str(self._path)))
                if "fault" in found:
                    raise self._failure(found["fault"])
            yield found
            taken += len(line)
            if taken > PIECE:
                yield Pause.FULL
                taken = 0
        self._process.kill()  # if it is silent
        raise self._failure("damaged" if self._process.wait() > 0 else "memory")

    def _lines(self) -> Iterator[bytes | Pause]:
        """Yield the lines as they come, and a pause while none does."""
        output = self._process.stdout
        assert output is not None  # noqa: S101 - it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            rest = b""
            waited = 0.0
            while True:
                began = time.monotonic()
                if selector.select(WAIT):
                    if not (piece := output.read(PIPE)):
                        return
                    *lines, rest = (rest + piece).split(b"\n")
                    yield from lines
                    waited = 0.0 if lines else waited
                    continue
                waited += time.monotonic() - began
                if waited > SILENCE:
                    return
                yield Pause.IDLE

    def _failure(self, fault: str) -> Failure:
        if fault == "damaged":
            return Failure(f"{self._path} {DAMAGES.get(self._task, DAMAGED)}")
        return Failure(f"{self._path} {TOO_MUCH} {REMEDIES[self._task]}")

    def close(self) -> None:
        """End the process, and delete its temporary files."""
        self._open.close()


def ask(task: str, path: Path, limits: Limits = NONE, **options: Any) -> Any:
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
        self._read = 0
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
    def position(self) -> int:
        return self._read

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
