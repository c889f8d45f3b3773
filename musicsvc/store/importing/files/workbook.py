"""Read a sheet of an Excel or OpenDocument workbook. The line of a row is its number in the sheet."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files.lines import LONGEST_LINE, unreadable
from musicsvc.store.importing.files.records import Reader, Record, headings

FORMATS = ("xlsx", "xls", "ods")
PROCESS = str(Path(__file__).with_name("workbook_process.py"))
FAULTS = {
    "damaged": "is damaged or has a password. Open it in a spreadsheet program, and save the sheet as CSV.",
    "empty": "is empty: no sheet has a cell.",
    "memory": "needs more than a gigabyte of memory or a minute to read. Save the sheet as CSV and import that.",
}


class WorkbookReader(Reader):
    """Reads the sheet of that name, by default the first visible one that has a table, in a process of its own.

    Raises Failure if it cannot be read.
    """

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        self._path = path
        try:
            path.open("rb").close()
        except OSError as error:
            raise unreadable(path, error) from None
        # -P: modules of the working folder are not those that it imports.
        command = [sys.executable, "-P", PROCESS, str(path), *([] if sheet is None else [sheet])]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl+C ends this process, which then ends that one
        )
        self._lines = iter(self._process.stdout or ())
        self._read = 0
        try:
            self._begin(sheet)
        except BaseException:
            self.close()
            raise

    def _begin(self, sheet: str | None) -> None:
        about = self._next()
        if "sheets" in about:
            raise Failure(f"{self._path} has no sheet {sheet!r}. Its sheets: {', '.join(about['sheets'])}.")
        self.size = about["height"]
        self.columns = headings(about["headings"], lambda what: Failure(f"{self._path}: row {about['line']} {what}."))
        self.sheets = [about["sheet"], *about["others"]]
        if others := ", ".join(about["others"]):
            self.remark = f"Read the sheet {about['sheet']}, not {others}."

    @property
    def position(self) -> int:
        return self._read

    def __iter__(self) -> Iterator[Record]:
        names = self.columns or []
        while isinstance(found := self._next(), list):
            self._read, cells, lasting = found
            for at in lasting:
                cells[at] = timedelta(seconds=cells[at])
            yield Record(self._read, dict(zip(names, cells, strict=True)))
        self._read = self.size

    def _next(self) -> Any:
        """Return what the process prints next. Raises Failure if that is a fault, or if the process ended early."""
        line = next(self._lines, b"")
        if line.endswith(b"\n"):
            found = orjson.loads(line)
            fault = found.get("fault") if isinstance(found, dict) else None
        else:
            found, fault = None, "memory" if self._process.wait() < 0 else "damaged"
        if fault == "long":
            raise Failure(f"{self._path}: row {found['line']} has more than {LONGEST_LINE:,} characters.")
        if fault in FAULTS:
            raise Failure(f"{self._path} {FAULTS[fault]}")
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
