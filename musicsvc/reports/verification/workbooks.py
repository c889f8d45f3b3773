"""Read the cells of exported Excel workbooks, also after a spreadsheet program has saved them again."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

Cell = str | float | None
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
SHARED = "xl/sharedStrings.xml"
SHEET = re.compile(r"xl/worksheets/sheet([0-9]+)\.xml")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a control character, or a `_` before a text that looks like one


def sheets(path: Path) -> Iterator[Iterator[dict[int, Cell]]]:
    """Yield the rows of each sheet. A row maps the number of a column (from 0) to the cell's text or number."""
    with zipfile.ZipFile(path) as book:
        found = [match for name in book.namelist() if (match := SHEET.fullmatch(name))]
        shared = _shared(book) if SHARED in book.namelist() else []
        for match in sorted(found, key=lambda match: int(match[1])):
            yield _rows(book, match[0], shared)


def _shared(book: zipfile.ZipFile) -> list[str]:
    return [_text(item) for item in _elements(book, SHARED, "si")]


def _rows(book: zipfile.ZipFile, name: str, shared: list[str]) -> Iterator[dict[int, Cell]]:
    for row in _elements(book, name, "row"):
        yield {_column(cell.get("r", "")): _value(cell, shared) for cell in row.iter(f"{MAIN}c")}


def _elements(book: zipfile.ZipFile, name: str, tag: str) -> Iterator[Element]:
    """Yield the XML elements with this tag. Each is cleared after use, so that memory does not grow."""
    with book.open(name) as source:
        for _, element in ET.iterparse(source):  # noqa: S314 - the user's own file; expat limits entities
            if element.tag == MAIN + tag:
                yield element
                element.clear()


def _column(reference: str) -> int:
    """Return the number of the column of a cell such as `AB12`."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _value(cell: Element, shared: list[str]) -> Cell:
    kind, value = cell.get("t"), cell.findtext(f"{MAIN}v")
    if kind == "inlineStr":
        return _text(cell)
    if value is None:
        return None
    if kind == "s":
        return shared[int(value)]
    return _unescaped(value) if kind == "str" else float(value)


def _text(element: Element) -> str:
    return _unescaped("".join(part.text or "" for part in element.iter(f"{MAIN}t")))


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
