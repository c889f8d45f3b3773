"""Read histories in lines: those of Rockbox, Libre.fm and Spinitron, and of tools for Last.fm, which has no export."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.files.histories.documents import Converted, entry_record
from musicsvc.store.importing.files.quoting import Rows
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.files.texts import CsvReader, TextReader, faulty

UNTAGGED = "<Untagged>"
COMMENTS = ("#", "+ACM-")
CELLS = 4
# Libre.fm has comments before the header, some in broken UTF-7, Spinitron lines about the show.
LIBRE_FM = {"artist": "artist", "track": "track", "album": "album", "time": "played_at"}
LASTFM = {"artist": "artist", "track": "track", "album": "album", "uts": "played_at"}
SPINITRON = {"artist": "artist", "song": "track", "release": "album", "date-time": "played_at"}
ROCKBOX = ("artist", "album", "track", "number", "length", "rating", "played_at", "recording")


class Rockbox(TextReader):
    """Reads `.scrobbler.log` (AudioScrobbler 1.1), separated by tabs. Times are treated as UTC."""

    columns = None

    def records(self) -> Iterator[Record | None]:
        for number, line, fault in self._lines:
            if fault:
                yield faulty(number, fault, line)
            elif not (line.startswith("#") or line.isspace()):
                cells = line.rstrip("\r\n").split("\t", len(ROCKBOX))
                cells += [""] * (len(ROCKBOX) - len(cells))
                yield entry_record(number, dict(zip(ROCKBOX, cells, strict=False)), _rockbox)


def _rockbox(row: Mapping[str, str]) -> Mapping[str, Any] | str:
    if row["rating"] == "S":
        return "skipped"
    artist = "" if row["artist"] == UNTAGGED else row["artist"]
    return {
        "external_id": row["recording"],
        "artist": [artist],
        "track": row["track"],
        "album": row["album"],
        "played_at": row["played_at"],
    }


def table(kind: str, names: Mapping[str, str], path: Path) -> Reader:
    """Open a CSV file with the columns `names` (import fields by lower-case column name). Raises Failure without."""
    reader = CsvReader(path, comments=COMMENTS)
    fields = {column: names[column.lower()] for column in reader.columns or () if column.lower() in names}
    if {"artist", "track", "played_at"} <= set(fields.values()):
        return Converted(partial(_fields, fields), reader)
    reader.close()
    raise Failure(f"{path} lacks the header row that {kind} writes.")


def _fields(fields: Mapping[str, str], row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {field: row[column] for column, field in fields.items()}
    return found | {"artist": [found["artist"]]}


class LastfmToCsv(TextReader):
    """Reads a CSV file without header, with the columns artist, album, title and UTC time in minutes."""

    columns = None

    def records(self) -> Iterator[Record | None]:
        for begins, row, fault, text in Rows(self._lines):
            if row is None:
                yield faulty(begins, fault, text)
            elif len(row) == CELLS:
                yield entry_record(begins, row, _row)
            elif any(row):
                yield Record(begins, {"row": row}, f"the row has {len(row)} cells, not {CELLS}")


def _row(row: list[str]) -> Mapping[str, Any]:
    artist, album, title, time = row
    return {"artist": [artist], "track": title, "album": album, "played_at": time}


def lastfmstats_csv(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a play. The column of the time is named `Date#` and the user, and comes last."""
    *_, milliseconds = row.values()
    return {
        "artist": [row["Artist"]],
        "track": row["Track"],
        "album": row["Album"],
        "played_at": int(milliseconds or 0) / 1000,
    }
