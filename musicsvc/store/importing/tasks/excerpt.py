"""Readers around another one: for the first rows, some of which are shown, and for a work that can be stopped."""

from collections.abc import Callable, Iterator
from typing import Any

from musicsvc.store.importing.files.records import Pause, Reader, Record, Step

MOST_CHECKED = 5_000
SHOWN = 20
LONGEST_CELL = 120
MOST_COLUMNS = 200  # of a page


class Excerpt(Reader):
    """The first MOST_CHECKED rows of another reader. `more`: there are further ones."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._shown: list[tuple[int, dict[str, str]]] = []  # lines and cells, shortened at once
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

    def steps(self) -> Iterator[Step]:
        count = 0
        for step in self._reader.steps():
            if isinstance(step, Record):
                if count == MOST_CHECKED:
                    self.more = True
                    return
                count += 1
                if len(self._shown) < SHOWN:
                    cells = {name: _text(value) for name, value in step.values.items()}
                    self._shown.append((step.line, cells))
            yield step

    def names(self) -> list[str]:
        """Return the columns, or those of the rows to show if they differ between rows."""
        found = self.columns or list(dict.fromkeys(name for _, cells in self._shown for name in cells))
        return found[:MOST_COLUMNS]

    def table(self) -> list[list[str]]:
        """Return the cells of the rows to show, as text."""
        names = self.names()
        return [[str(line), *(cells.get(name, "") for name in names)] for line, cells in self._shown]


class Heeding(Reader):
    """The rows of another reader. At each pause it calls `heed`, which may raise an exception to end the reading."""

    def __init__(self, reader: Reader, heed: Callable[[], None]) -> None:
        self._reader = reader
        self._heed = heed
        self.columns = reader.columns
        self.size = reader.size

    def close(self) -> None:
        self._reader.close()

    @property
    def position(self) -> int:
        return self._reader.position

    def steps(self) -> Iterator[Step]:
        for step in self._reader.steps():
            if isinstance(step, Pause):
                self._heed()
            yield step


def _text(value: Any) -> str:
    text = "" if value is None else "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
