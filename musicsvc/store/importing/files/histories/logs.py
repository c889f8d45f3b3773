"""Read histories in lines: those of Rockbox, Libre.fm and Spinitron, and of tools for Last.fm, which has no export."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.files.histories.documents import record
from musicsvc.store.importing.files.records import TOO_LONG, Record
from musicsvc.store.importing.files.texts import TextReader, table_record

UNTAGGED = "<Untagged>"
COMMENTS = ("#", "+ACM-")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CELLS = 4
# Libre.fm has comments before the header, some in broken UTF-7, Spinitron lines about the show.
LIBRE_FM = {"artist": "artist", "track": "track", "album": "album", "time": "played_at"}
SPINITRON = {"artist": "artist", "song": "track", "release": "album", "date-time": "played_at"}
ROCKBOX = ("artist", "album", "track", "number", "length", "rating", "played_at", "recording")


class Rockbox(TextReader):
    """Reads `.scrobbler.log` (AudioScrobbler 1.1), separated by tabs. Times are treated as UTC."""

    columns = None

    def records(self) -> Iterator[Record | None]:
        for number, line in self.each():
            if line is None:
                yield Record(number, {}, TOO_LONG)
            elif not (line.startswith("#") or line.isspace()):
                cells = line.rstrip("\r\n").split("\t", len(ROCKBOX))
                cells += [""] * (len(ROCKBOX) - len(cells))
                yield record(number, dict(zip(ROCKBOX, cells, strict=False)), _rockbox)


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


class Table(TextReader):
    """Reads a CSV file with other lines before the header. `names`: import fields by lower-case column name."""

    columns = None

    def __init__(self, kind: str, names: Mapping[str, str], path: Path) -> None:
        super().__init__(path)
        self._kind = kind
        self._names = names

    def records(self) -> Iterator[Record | None]:
        """Yield the rows below the header. Raises Failure if there is no header."""
        header: Sequence[str] = ()
        lines = filter(lambda line: not line.startswith(COMMENTS), self._lines)  # goes on behind one that is too long
        for begins, row in self.rows(csv.reader(lines)):
            if not header:
                header = self._header(row or ())
            elif row is None:
                yield Record(begins, {}, TOO_LONG)
            elif any(row):
                yield self._record(self._lines.number, header, row)
        if not header:
            raise Failure(f"{self._lines.path} lacks the header row that {self._kind} writes.")

    def _header(self, row: Sequence[str]) -> Sequence[str]:
        """Return the lower-case column names if the row is the header, otherwise an empty sequence."""
        found = [cell.strip().lower() for cell in row]
        needed = {name for name, field in self._names.items() if field != "album"}
        return found if needed <= set(found) else ()

    def _record(self, number: int, header: Sequence[str], row: Sequence[str]) -> Record:
        read = table_record(number, header, row)
        if read.fault is not None:
            return read
        found = {self._names[name]: cell for name, cell in read.values.items() if name in self._names}
        return Record(number, found | {"artist": [found["artist"]]})


class LastfmToCsv(TextReader):
    """Reads a CSV file without header, with the columns artist, album, title and UTC time in minutes."""

    columns = None

    def records(self) -> Iterator[Record | None]:
        for begins, row in self.rows(csv.reader(self._lines)):
            if row is None:
                yield Record(begins, {}, TOO_LONG)
            elif len(row) == CELLS:
                yield record(begins, row, _row)
            elif row:
                yield Record(begins, {"row": row}, f"the row has {len(row)} cells, not {CELLS}")


def _row(row: list[str]) -> Mapping[str, Any]:
    artist, album, title, time = row
    return {"artist": [artist], "track": title, "album": album, "played_at": _instant(time.strip())}


def _instant(text: str) -> datetime | str:
    """Parse a time with an English month name, in any locale. An empty text is returned unchanged."""
    if not text:
        return text
    day, month, year, clock = text.replace(",", "").split()
    hour, minute = clock.split(":")
    return datetime(int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)


def lastfm_csv(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a play in a CSV file with the columns `uts`, `artist`, `album` and `track`."""
    return {"artist": [row["artist"]], "track": row["track"], "album": row.get("album"), "played_at": row["uts"]}


def lastfmstats_csv(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a play. The column of the time is named `Date#` and the user, and comes last."""
    *_, milliseconds = row.values()
    return {
        "artist": [row["Artist"]],
        "track": row["Track"],
        "album": row["Album"],
        "played_at": int(milliseconds or 0) / 1000,
    }
