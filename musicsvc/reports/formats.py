"""The file formats of exports and reports. The libraries of a format are loaded only when a file is written."""

from __future__ import annotations

from dataclasses import dataclass
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
    first_plays: bool = False  # its rows also have the day of the first play


def _csv(table: Table) -> Iterator[bytes]:
    from musicsvc.reports import tables  # noqa: PLC0415 - loaded when a file is written

    return tables.csv(table)


def _json(table: Table) -> Iterator[bytes]:
    from musicsvc.reports import tables  # noqa: PLC0415 - the same

    return tables.json(table)


def _xlsx(table: Table) -> Iterator[bytes]:
    from musicsvc.reports import xlsx  # noqa: PLC0415 - the same

    return xlsx.xlsx(table)


def _parquet(table: Table) -> Iterator[bytes]:
    from musicsvc.reports import parquet  # noqa: PLC0415 - the same

    return parquet.parquet(table)


FORMATS = {
    each.id: each
    for each in (
        Format(
            "csv",
            "CSV",
            "A table for spreadsheets: UTF-8, a header row, a row for each track, album, artist or day.",
            "text/csv; charset=utf-8",
            _csv,
        ),
        Format(
            "json",
            "JSON",
            "The same rows as JSON, for programs.",
            "application/json; charset=utf-8",
            _json,
            attachment=False,
        ),
        Format(
            "xlsx",
            "Excel",
            "The same rows as a workbook, with numbers and dates in typed cells, and the day of the first play.",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            _xlsx,
            listed=False,
            text=False,
            first_plays=True,
        ),
        Format(
            "parquet",
            "Parquet",
            "The same rows as Parquet, with typed columns, for databases.",
            "application/vnd.apache.parquet",
            _parquet,
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
