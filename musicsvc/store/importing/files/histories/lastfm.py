"""Last.fm histories in the formats of three export tools. Last.fm itself has no export."""

import csv
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from musicsvc.store.importing.files.histories.documents import Document, record
from musicsvc.store.importing.files.records import TOO_LONG, Record
from musicsvc.store.importing.files.texts import CsvReader, TextReader

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CELLS = 4


class LastfmPages(Document):
    """Reads `recenttracks-….json`: a JSON array of pages, each with plays (scrobbles)."""

    def entries(self, value: Any) -> list[Any]:
        pages = value if isinstance(value, list) else [value]
        found: list[Any] = []
        for page in pages:
            inner = page.get("recenttracks", page) if isinstance(page, dict) else None
            if not isinstance(inner, dict) or not isinstance(inner.get("track"), list):
                raise self.unlike("is not an export of the recent tracks of Last.fm")
            found += inner["track"]
        return found

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return the fields of a play, or the note `playing_now` for a track without date, which is still playing."""
        if entry.get("date") is None:
            return "playing_now"
        return {
            "artist": [_text(entry["artist"])],
            "track": entry["name"],
            "album": _text(entry.get("album")),
            "played_at": entry["date"]["uts"],
        }


def _text(value: Any) -> Any:
    """Return the name of an artist or album, from the key `#text` or, in extended API responses, `name`."""
    return value.get("#text") or value.get("name") if isinstance(value, dict) else value


class LastfmCsv(CsvReader):
    """Reads a CSV file with the columns `uts`, `artist`, `album` and `track`."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises Failure if it is damaged. `columns` is None: users cannot map the columns."""
        super().__init__(path)
        self.columns = None

    def records(self) -> Iterator[Record | None]:
        for row in super().records():
            yield row if row is None or row.fault is not None else record(row.line, row.values, _scrobble)


def _scrobble(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "artist": [row["artist"]],
        "track": row["track"],
        "album": row.get("album"),
        "played_at": row["uts"],
    }


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
