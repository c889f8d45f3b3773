"""Uploaded files of accounts: their folder on this machine, and what a page shows and sets of the columns of one."""

import fcntl
import hashlib
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from musicsvc import descriptors
from musicsvc.clock import isoformat
from musicsvc.errors import Conflict, Invalid
from musicsvc.limited import Pause
from musicsvc.store.engine.url import without_password
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.cells.durations import clock_text
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader, Record, Step, Through
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import Kind

KINDS: dict[str, type[Kind[Any]]] = {"catalog": Catalog, "playlists": Playlists, "plays": Plays}
BUSY = "Your last file is still being read. Wait until it is done, then try again."
MOST_CHECKED = 5_000
SHOWN = 20
LONGEST_CELL = 120
MOST_COLUMNS = 200  # of a page


class Place(NamedTuple):
    """A folder of uploaded files. A process that uses the files of an account locks the account's folder."""

    folder: Path

    @classmethod
    def build(cls, parent: Path, url: str) -> Self:
        """Return the place for files of the database with this URL; others may have theirs in the same folder.

        A new password does not change it.
        """
        return cls(parent / f"uploads-{hashlib.sha256(without_password(url).encode()).hexdigest()[:16]}")

    @property
    def name(self) -> str:
        """The name in the database, which differs between machines."""
        return f"{socket.gethostname()}:{self.folder}"

    @contextmanager
    def locked(self, user: int) -> Iterator[Path]:
        """Lock the folder of an account's files, and yield it. Raises Conflict if it is in use."""
        folder = self.folder / str(user)
        descriptors.make_folder(folder)
        with descriptors.opened(folder) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(BUSY) from None
            yield folder

    def users(self) -> list[int]:
        """Return the accounts that have files here. Their folders stay when they have none."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return [int(each.name) for each in found if each.name.isdecimal() and any(each.iterdir())]


def tidy(folder: Path, kept: Collection[str]) -> None:
    """Delete the files of a locked folder, except those in `kept` and the lists of refused rows that belong to them."""
    names = {*kept, *map(refused_name, kept)}
    for each in folder.iterdir():
        if each.name not in names:
            each.unlink(missing_ok=True)


def refused_name(stored_as: str) -> str:
    """Return the name of the file with the refused rows of an uploaded file."""
    return f"{stored_as.partition('.')[0]}-refused.csv"


class Excerpt(Through):
    """The first MOST_CHECKED rows of another reader. `more`: there are further ones.

    At each pause it calls `heed`, which may raise an exception to end the reading.
    """

    def __init__(self, reader: Reader, heed: Callable[[], None] = lambda: None) -> None:
        super().__init__(reader)
        self._heed = heed
        self._shown: list[Record] = []
        self.more = False

    def steps(self) -> Iterator[Step]:
        count = 0
        for step in self._reader.steps():
            if isinstance(step, Pause):
                self._heed()
            elif count == MOST_CHECKED:
                self.more = True
                return
            else:
                count += 1
                if len(self._shown) < SHOWN:
                    self._shown.append(step)
            yield step

    def names(self) -> list[str]:
        """Return the columns, or those of the rows to show if they differ between rows."""
        found = self.columns or list(dict.fromkeys(name for each in self._shown for name in each.values))
        return found[:MOST_COLUMNS]

    def table(self, columns: Columns) -> list[list[Any]]:
        """Return the cells of the rows to show, as they are read, after the line. Of one that is not: its text, why."""
        names = self.names()
        # Divided as whole rows: the ids beside names tell how many there are.
        rows = [(each.line, columns.dividing.divide(each.values, ())[0]) for each in self._shown]
        return [[str(line), *(_as_read(columns, name, row.get(name)) for name in names)] for line, row in rows]


def _as_read(columns: Columns, name: str, value: Any) -> str | tuple[str, str]:
    field = columns.field(name)
    if field is None or value is None:
        return _text(value)
    cells = columns.read({name: value}, ())
    if reason := cells.reasons([field]):
        return _text(value), reason
    found = cells.values.get(field)
    if isinstance(found, int) and not isinstance(found, bool):
        if field == "duration_ms":
            return clock_text(found / 1000).removeprefix("0:").removeprefix("0")
        if field == "played_at":
            return f"{isoformat(found)[:19].replace('T', ' ')} UTC"
    return _text(getattr(found, "date", found))


def _text(value: Any) -> str:
    text = "" if value is None else "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = {"True": "yes", "False": "no"}.get(text, text) if isinstance(value, bool) else text
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def chosen_pairs(
    kind: str, columns: Sequence[Mapping[str, Any]], before: Sequence[str], choose: Callable[[int], str]
) -> list[str]:
    """Return `column=field` for each column that is not read as guessed. An empty field ignores the column.

    `columns`: those of the report. `before`: the pairs so far. `choose`: returns the chosen field by the number of the
    column. Raises Invalid, by number of the column, for a field that does not exist or is chosen twice.
    """
    fields = KINDS[kind].fields
    set_before = {pair.rpartition("=")[0] for pair in before}
    found, errors, taken = [], {}, set()
    for number, each in enumerate(columns):
        field = choose(number)
        if field and field not in fields:
            errors[str(number)] = "There is no such field."
        elif field in taken and not fields[field].several:
            errors[str(number)] = "Another column is read as this already."
        taken.add(field or None)
        # An ignored column stays set: without that, the guess could use it once another column is ignored.
        ignored = not field and (each["field"] or each["column"] in set_before)
        if each["column"] and (field != (each["guess"] or "") or ignored):
            found.append(f"{each['column']}={field}")
    if errors:
        raise Invalid(errors)
    return found
