"""Open files of all formats."""

from importlib.util import find_spec
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.limited import LimitedReader
from musicsvc.store.importing.files.records import NONE, Limits, Reader
from musicsvc.store.importing.files.texts import CsvReader, JsonLinesReader

DOCUMENT = "jsonl"  # what the process that reads histories calls a table that is one JSON value


def open_file(path: Path, form: str | None = None, sheet: str | None = None, limits: Limits = NONE) -> Reader:
    """Open the file in the format `form`, by default the detected one. Raises Failure if it cannot be read.

    `sheet`: the name of the sheet to read of a workbook.
    """
    kind = formats.format_of(path, form, limits)
    if sheet is not None and kind not in formats.WORKBOOKS:
        raise Failure(f"{path} has no sheets. Leave out --sheet.")
    return _open(kind, path, sheet, limits).named(path)


def _open(kind: str, path: Path, sheet: str | None, limits: Limits) -> Reader:
    if kind == "csv":
        return CsvReader(path, limits)
    if kind == "jsonl":
        first = formats.first_line(path)
        if first.startswith("[") or first == "{":
            return LimitedReader("histories", path, limits, form=DOCUMENT, zipped=False, largest=limits.history)
        return JsonLinesReader(path, limits)
    if kind != "parquet":
        return LimitedReader("workbooks", path, limits, sheet=sheet)
    from musicsvc import extras  # noqa: PLC0415 - the limited program does without this module

    with extras.required("parquet"):
        if find_spec("duckdb") is None:  # not imported: only the limited program needs it
            raise ImportError
    return LimitedReader("parquet", path, limits)
