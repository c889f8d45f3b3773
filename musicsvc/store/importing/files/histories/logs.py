"""Read logs of players and radio stations: Rockbox, Libre.fm, Pano Scrobbler, Spinitron."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.files.histories.detection import COMMENTS
from musicsvc.store.importing.files.histories.documents import record
from musicsvc.store.importing.files.records import TOO_LONG, Record
from musicsvc.store.importing.files.texts import JsonLinesReader, TextReader, each_line, table_record

UNTAGGED = "<Untagged>"
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
    """Base class for CSV files with other lines before the header. `names`: import fields by lower-case column name."""

    columns = None
    names: Mapping[str, str]
    kind: str

    def records(self) -> Iterator[Record | None]:
        """Yield the rows below the header. Raises Failure if there is no header."""
        header: Sequence[str] = ()
        for begins, row in self.rows(csv.reader(each_line(self._lines, COMMENTS))):
            if not header:
                header = self._header(row or ())
            elif row is None:
                yield Record(begins, {}, TOO_LONG)
            elif any(row):
                yield self._record(self._lines.number, header, row)
        if not header:
            raise Failure(f"{self._lines.path} lacks the header row that {self.kind} writes.")

    def _header(self, row: Sequence[str]) -> Sequence[str]:
        """Return the lower-case column names if the row is the header, otherwise an empty sequence."""
        found = [cell.strip().lower() for cell in row]
        needed = {name for name, field in self.names.items() if field != "album"}
        return found if needed <= set(found) else ()

    def _record(self, number: int, header: Sequence[str], row: Sequence[str]) -> Record:
        read = table_record(number, header, row)
        if read.fault is not None:
            return read
        found = {self.names[name]: cell for name, cell in read.values.items() if name in self.names}
        return Record(number, found | {"artist": [found["artist"]]})


class LibreFm(Table):
    """Reads Libre.fm exports, which have comments (some in broken UTF-7) before the header."""

    kind = "Libre.fm"
    names = {"artist": "artist", "track": "track", "album": "album", "time": "played_at"}  # noqa: RUF012 - a constant


class Spinitron(Table):
    """Reads Spinitron playlists of radio stations, which have lines about the show before the header."""

    kind = "Spinitron"
    names = {"artist": "artist", "song": "track", "release": "album", "date-time": "played_at"}  # noqa: RUF012 - a constant


class PanoScrobbler(JsonLinesReader):
    """Reads Pano Scrobbler logs, which have one JSON object per line."""

    def records(self) -> Iterator[Record | None]:
        for line in super().records():
            yield line if line is None or line.fault is not None else record(line.line, line.values, _scrobble)


def _scrobble(row: Mapping[str, Any]) -> Mapping[str, Any] | str:
    if row.get("event", "scrobble") != "scrobble":
        return "no_scrobble"
    return {
        "artist": [row["artist"]],
        "track": row["track"],
        "album": row.get("album"),
        "played_at": row["timeMs"] / 1000,
    }
