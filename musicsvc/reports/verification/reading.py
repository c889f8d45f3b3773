"""Read the rows of export files back, each as a mapping of columns to values."""

import csv
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import orjson

from musicsvc import extras
from musicsvc.errors import Failure
from musicsvc.reports.parquet import TYPES
from musicsvc.reports.verification import workbooks

Row = dict[str, Any]
EXCEL_DAY_0 = date(1899, 12, 30)
UNREADABLE = (csv.Error, zipfile.BadZipFile, ParseError, ValueError, KeyError, TypeError, IndexError)


def rows(path: Path, form: str, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a csv, json, xlsx or parquet file (`form`). Raises Failure unless it has these columns."""
    read = {"csv": _csv, "json": _json, "xlsx": _xlsx, "parquet": _parquet}[form]
    try:
        yield from read(path, columns)
    except UNREADABLE as error:
        raise Failure(
            f"{path} does not have the rows of an export in the format {form}. It was changed since. ({error})"
        ) from None


def _csv(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        if next(lines, []) != list(columns):
            raise ValueError("the header row differs")
        for line in lines:
            yield {column: _from_csv(column, text) for column, text in zip(columns, line, strict=True)}


def _from_csv(column: str, text: str) -> Any:
    if column in TYPES:
        return text
    return None if text == "" else float(text) if "." in text else int(text)


def _json(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    for row in document(path)["data"]["rows"]:
        yield {column: row[column] for column in columns}


def document(path: Path) -> Row:
    """Return a JSON file's content. Raises Failure if it is not JSON."""
    try:
        found: Row = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path} is not a JSON file: {error}.") from None
    return found


def _xlsx(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of all sheets whose first row begins with the names of the columns."""
    header = dict(enumerate(columns))
    for sheet in workbooks.sheets(path):
        first = next(sheet, {})
        if {place: first.get(place) for place in header} == header:
            for row in sheet:
                yield {column: _from_cell(column, row.get(place)) for place, column in header.items()}


def _from_cell(column: str, value: workbooks.Cell) -> Any:
    if column == "date" and isinstance(value, float):
        return (EXCEL_DAY_0 + timedelta(days=value)).isoformat()
    if column in TYPES:
        return "" if value is None else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    with extras.required("parquet"):
        import duckdb  # noqa: PLC0415 - an extra
    try:
        with duckdb.connect(":memory:", config={"threads": 1, "autoinstall_known_extensions": False}) as connection:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [name for name, *_ in found.description or ()]
            while row := found.fetchone():
                cells = dict(zip(names, row, strict=True))
                yield {column: _from_parquet(cells[column]) for column in columns}
    except duckdb.Error as error:
        raise ValueError(str(error).partition("\n")[0]) from None


def _from_parquet(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
