"""Uploaded files and imports as their pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from musicsvc.store.importing.columns import ignored
from musicsvc.store.importing.dividing import AT_SEMICOLONS
from musicsvc.store.importing.files.encodings import ENCODINGS
from musicsvc.store.importing.people.playlists import name_of
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import KINDS
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.models import ImportTask
from musicsvc.wording import cut

LABELS = {"isrc": "ISRC", "upc": "UPC", "bpm": "BPM", "duration_ms": "Duration (ms, or m:ss)"}
STATES = {
    "running": "running",
    "done": "done",
    "stopped": "interrupted",
    "undoing": "being undone",
    "partly": "undone, except what is in use",
    "undone": "undone",
}
SURE = {None, "m:ss", "h:mm:ss", "milliseconds", AT_SEMICOLONS}  # notations that mean one thing
LABELS_OF_ROWS = {"duration_ms": "Duration"}
EXAMPLES = 3
OPTIONS: dict[str, Any] = {
    "pairs": [],
    "sheet": None,
    "encoding": None,
    "artist": None,
    "playlist": None,
    "date_format": None,
    "divide": [],
    "listener": None,
    "create_missing": False,
    "public": False,
    "strict": False,
}
# The report of a file that was not read yet (store/importing/tasks/work.py).
REPORT: dict[str, Any] = {
    "problem": None,
    "encoding": None,
    "done": "",
    **dict.fromkeys(("is_history", "at_most", "more", "again"), False),
    **dict.fromkeys(("columns", "rows", "reasons", "notes", "artists", "kept", "sheets"), ()),
    **dict.fromkeys(("read", "refused", "more_reasons", "twins"), 0),
    "counts": {},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an uploaded file. `field`: the field that it fills, or an empty text."""

    name: str
    field: str
    written: str | None
    examples: list[str]
    signs: str | None  # those of a rule by which its names are divided
    number: int  # its place, from 0
    why: str  # it is read as that, or not used
    doubt: str  # what is wrong with its cells
    is_doubtful: bool

    @property
    def label(self) -> str:
        return self.field and LABELS_OF_ROWS.get(self.field, label(self.field))


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded file, or the undo of an import. `report`: what is known of it."""

    task: ImportTask
    report: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def is_active(self) -> bool:
        return self.task.state not in queue.ENDED

    @property
    def is_imported(self) -> bool:
        return (self.task.step, self.task.state) == (queue.IMPORT, queue.DONE)

    @property
    def columns(self) -> list[Column]:
        rows = self.report["rows"]
        found = []
        joined = any(marks for _, marks in self.report["artists"])
        for place, each in enumerate(self.report["columns"], 1):
            cells = (row[place] if isinstance(row[place], str) else row[place][0] for row in rows)
            examples, field = list(dict.fromkeys(filter(None, cells)))[:EXAMPLES], each["field"] or ""
            doubt, divisible = each.get("doubt") or "", joined and self.has_names(field)
            doubtful = bool(
                doubt
                or each["written"] not in SURE
                or divisible
                or (self.report["problem"] and not self.lacks_playlist)
            )
            told = (each["written"], examples, each.get("signs"), place - 1, each.get("why") or "", doubt, doubtful)
            found.append(Column(each["column"], field, *told))
        return found

    @property
    def sheets(self) -> list[tuple[str, str]]:
        """The sheets of a workbook as choices, the one that is read first."""
        return [(name, cut(name)) for name in self.report["sheets"]]

    def has_names(self, field: str) -> bool:
        """Return True if a column that fills the field can have several names in a cell."""
        found = KINDS[self.task.kind].fields.get(field)
        return found is not None and found.several and found.is_name

    @property
    def lacks_playlist(self) -> bool:
        """True if the name of the playlist is all that the file lacks, as most files of one playlist do."""
        return (self.report["problem"] or "").startswith("No column has the playlist")

    @property
    def playlist(self) -> str:
        """The playlist of rows that name none: as chosen, or that of the file, if no column names playlists."""
        is_named = any(each["field"] == "playlist" for each in self.report["columns"])
        return self.options["playlist"] or ("" if is_named else name_of(self.task.file))

    @property
    def is_unclear(self) -> bool:
        """True if the file may be read once its encoding is named."""
        return "encoding" in (self.report["problem"] or "") or self.options["encoding"] is not None

    @property
    def encodings(self) -> list[tuple[str, str]]:
        """The encodings that a text file can have, and their names; none if the file is no text."""
        found = self.report["encoding"]
        guessed = f"as the file says ({found})" if found and not self.options["encoding"] else "as the file says"
        return [] if found == "" else [("", guessed), *ENCODINGS.items()]

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The fields that a column can fill, and their labels."""
        fields = KINDS[self.task.kind].fields
        return [("", "Not used"), *((name, label(name)) for name, each in fields.items() if each.parse is not ignored)]


def label(field: str) -> str:
    return LABELS.get(field) or field.replace("_", " ").capitalize()


def file(task: ImportTask) -> File:
    return File(task, REPORT | queue.options_of(task.report), OPTIONS | queue.options_of(task.options))


def run(row: RunRow) -> dict[str, Any]:
    """Return an import for the list: its state in words, and its counts over all kinds of items."""
    totals = {name: sum(each[name] for each in row.counts.values()) for name in ("new", "changed", "refused")}
    can_undo = row.state not in {"running", "undone"}
    return {"row": row, "state": STATES[row.state], "can_undo": can_undo, **totals}
