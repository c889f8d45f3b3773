"""Workbooks of three formats, made of rows of cells, and a sheet of a workbook as XML."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from xml.sax.saxutils import quoteattr

import openpyxl

Rows = Sequence[Sequence[object]]
SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)
SPREADSHEET = "application/vnd.oasis.opendocument.spreadsheet"
MANIFEST = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
SECTOR = 512
FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def write_xlsx(path: Path, rows: Rows, **more: Rows) -> Path:
    """Write a workbook with the sheets `Sheet`, which has these rows, and `more`."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, cells in {"Sheet": rows, **more}.items():
        sheet = book.create_sheet(name)
        for row in cells:
            sheet.append(list(row))
    book.save(path)
    return path


def write_ods(path: Path, rows: Rows) -> Path:
    lines = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
    content = (
        f'<office:document-content {SPACES} office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet">{lines}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", SPREADSHEET, zipfile.ZIP_STORED)
        book.writestr("META-INF/manifest.xml", MANIFEST)
        book.writestr("content.xml", content)
    return path


def _ods_cell(cell: object) -> str:
    match cell:
        case None | "":
            return "<table:table-cell/>"
        case bool():
            kind, name, value = "boolean", "boolean-value", str(cell).lower()
        case int() | float():
            kind, name, value = "float", "value", repr(cell)
        case timedelta():
            hours, minutes, seconds = str(cell).split(":")
            kind, name, value = "time", "time-value", f"PT{hours}H{minutes}M{seconds}S"
        case date():
            kind, name, value = "date", "date-value", cell.isoformat()
        case _:
            kind, name, value = "string", "string-value", str(cell)
    attributes = f'office:value-type="{kind}" office:{name}={quoteattr(value)}'
    return f"<table:table-cell {attributes}/>"


def write_xls(path: Path, rows: Rows) -> Path:
    """Write a workbook of Excel 97 with texts and numbers."""
    cells = b"".join(
        _xls_cell(at, column, cell)
        for at, row in enumerate(rows)
        for column, cell in enumerate(row)
        if cell is not None
    )
    start = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))
    name = b"\x05\x00Sheet"
    place = len(start) + 4 + 6 + len(name) + 4
    sheet = _record(0x85, struct.pack("<IH", place, 0) + name)
    rest = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0)) + cells + _record(0x0A, b"")
    return write_ole(path, {"Workbook": start + sheet + _record(0x0A, b"") + rest})


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _xls_cell(row: int, column: int, cell: object) -> bytes:
    head = struct.pack("<HHH", row, column, 0)
    if isinstance(cell, int | float):
        return _record(0x203, head + struct.pack("<d", cell))
    text = str(cell)
    return _record(0x204, head + struct.pack("<HB", len(text), 1) + text.encode("utf-16-le"))


def write_ole(path: Path, streams: Mapping[str, bytes]) -> Path:
    """Write a compound file, in which Office kept its documents before 2007 and keeps encrypted ones."""
    sectors: list[bytes] = []
    following: list[int] = []

    def add(content: bytes) -> int:
        first = len(sectors)
        parts = [content[at : at + SECTOR].ljust(SECTOR, b"\0") for at in range(0, len(content), SECTOR)]
        sectors.extend(parts)
        following.extend([*range(first + 1, first + len(parts)), END])
        return first

    entries = []
    for name, content in streams.items():
        padded = content.ljust(4096, b"\0")  # shorter streams are kept in another way
        entries.append(_entry(name, 2, add(padded), len(padded)))
    root = _entry("Root Entry", 5, END, 0, child=1)
    directory = add(b"".join([root, *entries]).ljust(SECTOR, b"\0"))
    following.append(TABLE)
    table = struct.pack(f"<{SECTOR // 4}I", *following, *[FREE] * (SECTOR // 4 - len(following)))
    place = len(sectors)
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, directory, 0, 4096, END, 0, END, 0) + struct.pack("<I", place)
    path.write_bytes(head + struct.pack("<I", FREE) * 108 + b"".join(sectors) + table)
    return path


def _entry(name: str, kind: int, start: int, size: int, *, child: int = FREE) -> bytes:
    encoded = name.encode("utf-16-le") + b"\0\0"
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded), kind, 1)
    return head + struct.pack("<III", FREE, FREE, child) + bytes(36) + struct.pack("<IQ", start, size)


def replace_member(path: Path, name: str, content: str) -> Path:
    """Replace a file in a workbook, which is a zip file."""
    with zipfile.ZipFile(path) as book:
        members = {each: book.read(each) for each in book.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for member, before in members.items():
            book.writestr(member, content if member == name else before)
    return path
