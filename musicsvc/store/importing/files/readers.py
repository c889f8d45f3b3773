"""Open files of all formats."""

from importlib.util import find_spec
from pathlib import Path

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.limited import LimitedReader
from musicsvc.store.importing.files.lines import HEAD
from musicsvc.store.importing.files.records import NONE, Limits, Reader
from musicsvc.store.importing.files.texts import CsvReader, JsonLinesReader, TextReader

TEXTS: dict[str, type[TextReader]] = {"csv": CsvReader, "jsonl": JsonLinesReader}
EXPORT = '{"success":true,"data":{'  # how our own exports as JSON begin
DOCUMENT = "jsonl"  # what the process that reads histories calls a table that is one JSON value


def open_file(
    path: Path,
    form: str | None = None,
    sheet: str | None = None,
    limits: Limits = NONE,
    encoding: str | None = None,
) -> Reader:
    """Open the file in the format `form`, by default the detected one. Raises Failure if it cannot be read.

    `sheet`: the name of the sheet to read of a workbook. `encoding`: a key of `encodings.ENCODINGS`, of a text file.
    """
    kind = formats.format_of(path, form, limits, encoding)
    if sheet is not None and kind not in formats.WORKBOOKS:
        raise Failure(f"{path} has no sheets. Leave out --sheet.")
    if kind in TEXTS and not (kind == "jsonl" and _is_document(path, encoding)):
        return TEXTS[kind](path, limits, encoding).named(path)
    if kind == "jsonl":
        chosen = {"form": DOCUMENT, "zipped": False, "largest": limits.history, "encoding": encoding}
        return LimitedReader("histories", path, limits, **chosen).named(path)
    if encoding is not None:
        raise Failure(f"{path} is no text file. Leave out --encoding.")
    return _open(kind, path, sheet, limits).named(path)


def _is_document(path: Path, encoding: str | None) -> bool:
    """Return True if the file is a single JSON value instead of one JSON object per line."""
    first = formats.first_line(path, encoding)
    plain = "".join(first[:HEAD].split())
    return first.startswith("[") or first == "{" or plain.startswith(EXPORT) or _is_list(first, plain)


def _is_list(first: str, plain: str) -> bool:
    """Return True for an object whose only key has a list of objects, as `json.dump` writes it. No row is such."""
    if not plain.partition('":')[2].startswith("[{"):
        return False
    try:
        return len(orjson.loads(first)) == 1
    except orjson.JSONDecodeError:
        return 2 * len(first) > HEAD  # the beginning of a line that is longer than a row can be


def _open(kind: str, path: Path, sheet: str | None, limits: Limits) -> Reader:
    if kind != "parquet":
        return LimitedReader("workbooks", path, limits, sheet=sheet)
    from musicsvc import extras  # noqa: PLC0415 - the limited program does without this module

    with extras.required("parquet"):
        if find_spec("duckdb") is None:  # not imported: only the limited program needs it
            raise ImportError
    return LimitedReader("parquet", path, limits)
