"""Write CSV and JSON files in pieces, so that memory does not grow with the number of rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from musicsvc.reports.columns import Column
from musicsvc.wording import quoted

JSON = dict[str, Any]
PIECE = 64 * 1024
END = b"\r\n"  # RFC 4180


@dataclass(frozen=True, slots=True)
class Table:
    """The content of an export file. `head`: data about the whole export, which JSON files have before the rows.

    `verification` returns the description of the export. It is complete once all rows were read. `folder`: where
    temporary files are written; None: in the system's folder.
    """

    columns: Sequence[Column]
    rows: Iterable[Sequence[object]]
    head: Mapping[str, object]
    verification: Callable[[], Mapping[str, object]] = dict
    folder: Path | None = None

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.columns]


def csv(table: Table) -> Iterator[bytes]:
    """Yield a CSV file (RFC 4180, UTF-8) in pieces. Texts are quoted, numbers are not, None is an empty cell."""
    return _pieces(_lines(table))


def _lines(table: Table) -> Iterator[bytes]:
    yield ",".join(map(cell, table.names)).encode() + END
    for row in table.rows:
        yield ",".join(map(cell, row)).encode() + END


def cell(value: object) -> str:
    """Return the value as a CSV cell. Texts are quoted. A `'` before a formula keeps spreadsheets from running it."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    # Quotes keep a text in its cell, whichever separator a spreadsheet expects.
    return '"' + quoted(value).replace('"', '""') + '"'


def as_read_from_csv(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row as its line in a CSV file is read: texts are defused, and an empty text is None."""
    return {column: quoted(value) or None if isinstance(value, str) else value for column, value in row.items()}


def json(table: Table) -> Iterator[bytes]:
    """Yield a JSON file in pieces: `{"success": true, "data": {…head, "rows": […], "verification": {…}}}`."""
    return _pieces(_objects(table))


def _objects(table: Table) -> Iterator[bytes]:
    yield b'{"success":true,"data":' + orjson.dumps(table.head).removesuffix(b"}") + b',"rows":['
    before, names = b"", table.names
    for row in table.rows:
        yield before + orjson.dumps(dict(zip(names, row, strict=True)))
        before = b","
    yield b'],"verification":' + orjson.dumps(table.verification()) + b"}}"


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
