"""The file formats of exports and reports. The libraries of a format are loaded only when a file is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from musicsvc.reports.tables import Table


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of exports.

    `write_table` yields a file with rows, in pieces; it is None if only reports have the format.
    """

    id: str
    name: str
    description: str
    media_type: str
    write_table: Callable[[Table], Iterator[bytes]] | None = None
    listed: bool = True  # the API offers it under /export/formats
    attachment: bool = True  # browsers save the response instead of showing it
    text: bool = True  # it may be written to a terminal
    reports: bool = True  # reports have it, and pages offer it: it is for people
    for_people: bool = False  # its rows have the day of the first play in place of growth that would mislead


def _write(module: str, name: str, table: Table) -> Iterator[bytes]:
    """Write a table with a function of a module, which is loaded when a file is written."""
    written: Iterator[bytes] = getattr(import_module(f"musicsvc.reports.{module}"), name)(table)
    return written


FORMATS = {
    each.id: each
    for each in (
        Format(
            "csv",
            "CSV",
            "A table for spreadsheets: UTF-8, a header row, a row for each track, album, artist or day.",
            "text/csv; charset=utf-8",
            partial(_write, "tables", "csv"),
        ),
        Format(
            "json",
            "JSON",
            "The same rows as JSON, for programs.",
            "application/json; charset=utf-8",
            partial(_write, "tables", "json"),
            attachment=False,
        ),
        Format(
            "xlsx",
            "Excel",
            "The same rows as a workbook for people, with numbers and dates in typed cells.",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            partial(_write, "xlsx", "xlsx"),
            listed=False,
            text=False,
            for_people=True,
        ),
        Format(
            "parquet",
            "Parquet",
            "The same rows as Parquet, with typed columns, for databases.",
            "application/vnd.apache.parquet",
            partial(_write, "parquet", "parquet"),
            listed=False,
            text=False,
            reports=False,
        ),
        Format(
            "pdf",
            "PDF",
            "A report to read and to hand on: key figures, charts, the most played tracks.",
            "application/pdf",
            text=False,
        ),
    )
}
