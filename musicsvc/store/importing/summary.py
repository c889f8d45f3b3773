"""The result of an import, or of its dry run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

KINDS = ("artists", "albums", "tracks", "genres")
NOTES = {
    "month_padded": "release dates had only a year; January 1 was used",
    "day_padded": "release dates had no day; the first of the month was used",
    "bpm_dropped": "tempos outside 20 to 400 were left out",
    "differing": "rows disagree with an earlier row about their track or album; the earlier row was kept",
    "tags_dropped": "tags were left out, because a track has at most 20",
    "playlists_ignored": "playlist entries were left out; import them with `musicsvc import playlists`",
    "short": "streams under 30 seconds that did not reach the end of the track were left out",
    "private": "streams of private sessions were left out",
    "no_track": "streams of podcasts, audiobooks or deleted tracks were left out",
    "skipped": "skipped tracks were left out",
    "playing_now": "tracks still playing at the time of the export were left out",
    "no_scrobble": "entries other than scrobbles were left out",
}


@dataclass(slots=True)
class Counts:
    """The numbers of rows that created, changed or repeated an item, or were refused."""

    new: int = 0
    changed: int = 0
    repeated: int = 0
    refused: int = 0

    def add(self, other: Counts) -> None:
        self.new += other.new
        self.changed += other.changed
        self.repeated += other.repeated
        self.refused += other.refused


class Refusal(NamedTuple):
    """A refused row. `kind` is the reason, shared by many rows; `names` are the values of this row that it concerns.

    `member` is the file within an archive.
    """

    line: int
    kind: str
    names: tuple[str, ...] = ()
    member: str | None = None

    @property
    def reason(self) -> str:
        found = f"{self.kind}: {', '.join(self.names)}" if self.names else self.kind
        return found if self.member is None else f"{self.member}: {found}"


@dataclass(slots=True)
class ImportSummary:
    """The result of an import. `notes` counts by the keys of NOTES; `unused` are the columns that fill no field."""

    dry_run: bool
    unused: list[str] = field(default_factory=list)
    rows: int = 0
    counts: dict[str, Counts] = field(default_factory=lambda: {kind: Counts() for kind in KINDS})
    refused: list[Refusal] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


Progress = Callable[[ImportSummary], None]
