"""Rows in, the bytes of a CSV or JSON file out, piece by piece; memory does not grow with the rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PIECE = 64 * 1024
CSV_TYPE = "text/csv; charset=utf-8"
END = b"\r\n"  # RFC 4180
# A spreadsheet may also take a line within a cell for a formula. The second sign of each pair is the full-width one.
_FORMULA = re.compile(r"(?m)(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?=[=\uff1d+\uff0b\-\uff0d@\uff20\t\r])")


def csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield a header and the rows in UTF-8 (RFC 4180): texts quoted, numbers not, None as an empty cell."""
    return _pieces(_lines(columns, rows))


def _lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    yield ",".join(map(cell, columns)).encode() + END
    for row in rows:
        yield ",".join(map(cell, row)).encode() + END


def cell(value: object) -> str:
    """Return a value as a CSV file holds it: numbers plain, texts quoted, `'` before what would be a formula.

    Quotes keep a text in its cell, whatever separator a spreadsheet takes.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return '"' + _FORMULA.sub("'", value).replace('"', '""') + '"'


def json(head: Mapping[str, object], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """The object `{"success": true, "data": {…head, "rows": […]}}`, each row an object with the columns as keys."""
    return _pieces(_objects(head, columns, rows))


def _objects(head: Mapping[str, object], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    yield b'{"success":true,"data":' + orjson.dumps(head).removesuffix(b"}") + b',"rows":['
    before = b""
    for row in rows:
        yield before + orjson.dumps(dict(zip(columns, row, strict=True)))
        before = b","
    yield b"]}}"


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
