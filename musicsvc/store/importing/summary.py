"""The result of an import, or of its dry run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from itertools import groupby
from operator import add, itemgetter
from typing import NamedTuple

from musicsvc.store.importing.cells import lists
from musicsvc.store.importing.columns import NO_FIELD, Guess, Unread
from musicsvc.store.importing.files.records import Remark
from musicsvc.wording import cut, quantity, some_of

MOST_NAMED = 1_000  # new artists of an import
MOST_SHARED = 12  # UPCs, and lines of one, that a remark lists

NOTES = {
    "month_padded": "Release dates with only a year, taken as January 1",
    "year_padded": "Release dates without a year, such as 0000, taken as none",
    "day_padded": "Release dates without a day, taken as the first of the month",
    "controls_dropped": "Rows with control characters in names, which were left out of the names",
    "differing": "Rows with another release date or image than an earlier row of their album, which keeps that one",
    "playlists_ignored": "Playlist entries, left out (run: musicsvc import playlists)",
    "no_song": "Rows of sold albums and goods, which are no tracks, left out",
    "total": "Rows of totals, left out",
    "headings": "Rows that repeat the headings, left out",
    "artist_of_album": "Rows without an artist, which have that of their album",
    "deleted": "Plays of deleted tracks, left out",
    "short": "Streams under 30 seconds before the end of the track, left out",
    "private": "Streams of private sessions, left out",
    "no_track": "Streams of podcasts, audiobooks or deleted tracks, left out",
    "skipped": "Skipped tracks, left out",
    "playing_now": "Tracks still playing at the time of the export, left out",
    "no_music": "Entries of YouTube other than those of YouTube Music, left out",
    "no_time": "Entries without a time or of before October 2002, left out",
    "no_scrobble": "Entries other than plays, left out",
    "ids_differ": "Cells with more or fewer names than ids beside them, taken as one name",
}


@dataclass(slots=True)
class Counts:
    """Numbers of rows that created or changed something, of rows with only known values, and of refused rows."""

    new: int = 0
    changed: int = 0
    repeated: int = 0
    refused: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, astuple(self), astuple(other)))


class Refusal(NamedTuple):
    """A refused row of an imported file: its line number, the reason (`kind`) and the faulty values (`names`)."""

    line: int
    kind: str  # the reason, which many rows may share
    names: tuple[str, ...] = ()
    member: str | None = None  # the name of its file within an archive
    counted: str = ""  # the kind of item that counts as refused
    notes: tuple[str, ...] = ()  # keys of NOTES that count although the row is refused

    @property
    def reason(self) -> str:
        found = f"{self.kind}: {', '.join(self.names)}" if self.names else self.kind
        return found if self.member is None else f"{self.member}: {found}"


LeftOutCell = tuple[int, str, str, str]  # the line of a cell, its field, why it was left out, and its text


@dataclass(slots=True)
class LeftOut:
    """Cells that were left out for one reason: their number, and the first one of them with its line."""

    count: int
    line: int
    example: str


class SharedUpc(NamedTuple):
    """A UPC of albums with several names: for each name, the first line that has it."""

    upc: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.upc} is one UPC, {len(self.lines)} names: lines {some_of([*map(str, self.lines)], MOST_SHARED)}"


@dataclass(slots=True)
class ImportSummary:
    """The result of an import. `notes`: numbers of rows by remark (a key of NOTES). `unused`: the ignored columns.

    `readings`: those of the reader. `left_out`: cells by field and reason. `unread`: columns not used for their cells.
    """

    dry_run: bool
    unused: list[str] = field(default_factory=list)
    columns: list[Guess] = field(default_factory=list)  # what the columns of the file were taken for
    rows: int = 0
    counts: dict[str, Counts] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    joined: dict[str, tuple[str, ...]] = field(default_factory=dict)  # `lists.marks` by names of new artists
    single: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the same without marks
    notes: Counter[str] = field(default_factory=Counter)
    readings: Sequence[Remark] = ()
    left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)
    zeros: int = 0  # cells that were left out because 0 stands for none there
    unread: list[Unread] = field(default_factory=list)
    shared_upcs: list[SharedUpc] = field(default_factory=list)
    run: int | None = field(default=None, compare=False)  # the id of the import, which a dry run has not
    at_most: bool = False  # a dry run of a long file, which counts names again that return after some seconds

    def leave_out(self, cells: Iterable[LeftOutCell]) -> None:
        for line, name, reason, example in cells:
            self.left_out.setdefault((name, reason), LeftOut(0, line, example)).count += 1
            self.zeros += not example.strip("0")

    @property
    def objections(self) -> list[str]:
        """The reasons for which `--strict` refuses the file, in words."""
        left_out, unread = sum(each.count for each in self.left_out.values()) - self.zeros, len(self.unread)
        found = (
            (len(self.refused), f"{quantity(len(self.refused), 'row')} refused"),
            (left_out, f"{quantity(left_out, 'cell')} left out"),
            (unread, f"{quantity(unread, 'column')} not read"),
        )
        return [words for count, words in found if count]

    def account(self) -> Iterator[str]:
        """Yield in sentences what was taken otherwise than it stands, left out or not used."""
        yield from (f"{title}: {count:,}." for note, title in NOTES.items() if (count := self.notes[note]))
        yield from (f"{each}." for each in self.shared_upcs[:MOST_SHARED])
        if more := len(self.shared_upcs[MOST_SHARED:]):
            yield f"{quantity(more, 'more UPC')} of albums with several names."
        for (name, reason), cells in self.left_out.items():
            yield f"Cells left out: {cells.count:,}, {name} {reason}; line {cells.line} has {cells.example}."
        for each in self.unread:
            where = f"{each.field} {each.reason}; line {each.line} has {each.example}"
            yield f"Column not read: {cut(each.column)}, {quantity(each.count, 'cell')}, {where}."
        reasons = {each.column: each.why for each in self.columns}
        unread = {each.column for each in self.unread}
        unused = [(reasons.get(name, NO_FIELD), cut(name)) for name in self.unused if name not in unread]
        for reason, columns in groupby(sorted(unused, key=itemgetter(0)), itemgetter(0)):
            yield f"Unused columns: {', '.join(name for _, name in columns)} ({reason})."

    def add_artists(self, names: Iterable[str]) -> None:
        for name in names:
            marks = lists.marks(name)
            found = self.joined if marks else self.single
            if len(found) < MOST_NAMED:
                found[name] = marks

    @property
    def new_artists(self) -> list[tuple[str, tuple[str, ...]]]:
        """The first MOST_NAMED new artists with their marks, those that have some before the others."""
        return [*self.joined.items(), *self.single.items()][:MOST_NAMED]


Progress = Callable[[ImportSummary], None]
