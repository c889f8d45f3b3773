"""A reader for the first rows of a file, which keeps some of them to be shown."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from musicsvc.store.importing.files.records import Reader, Record

MOST_CHECKED = 5_000
SHOWN = 20
LONGEST_CELL = 120
MOST_COLUMNS = 200  # of a page


class Excerpt(Reader):
    """The first MOST_CHECKED rows of another reader. `more`: there are further ones."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._shown: list[Record] = []
        self.columns = reader.columns
        self.size = reader.size
        self.name = reader.name
        self.remark = reader.remark
        self.sheets = reader.sheets
        self.more = False

    def close(self) -> None:
        self._reader.close()

    @property
    def position(self) -> int:
        return self._reader.position

    def __iter__(self) -> Iterator[Record]:
        records = iter(self._reader)
        for record in islice(records, MOST_CHECKED):
            if len(self._shown) < SHOWN:
                self._shown.append(record)
            yield record
        self.more = next(records, None) is not None

    def names(self) -> list[str]:
        """Return the columns, or those of the rows to show if they differ between rows."""
        found = self.columns or list(dict.fromkeys(name for record in self._shown for name in record.values))
        return found[:MOST_COLUMNS]

    def table(self) -> list[list[str]]:
        """Return the cells of the rows to show, as text."""
        names = self.names()
        return [[str(record.line), *(_text(record.values.get(name)) for name in names)] for record in self._shown]


def _text(value: Any) -> str:
    text = "" if value is None else "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
