"""What an import did, or would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

KINDS = ("artists", "albums", "tracks", "genres")
NOTES = {
    "month_padded": "release dates had a year only; January 1 was taken",
    "day_padded": "release dates had no day; the first of the month was taken",
    "bpm_dropped": "tempos outside 20 to 400 were left out",
    "differing": "rows say something else about their track or album than an earlier row, which was kept",
    "tags_dropped": "tags were left out, because a track holds 20 at most",
    "playlists_ignored": "playlist entries were not taken; `musicsvc import playlists` takes them",
    "short": "streams under 30 seconds that did not come to the track's end were left out",
    "private": "streams of private sessions were left out",
    "no_track": "streams of podcasts, audiobooks, or tracks that are gone were left out",
    "skipped": "tracks that were skipped were left out",
    "playing_now": "tracks that were playing just then were left out",
    "no_scrobble": "entries other than scrobbles were left out",
}


@dataclass(slots=True)
class Counts:
    """How often the rows named something that is new, changed by them, there already, or refused."""

    new: int = 0
    changed: int = 0
    repeated: int = 0
    refused: int = 0

    def add(self, other: Counts) -> None:
        """Count these too."""
        self.new += other.new
        self.changed += other.changed
        self.repeated += other.repeated
        self.refused += other.refused


class Refusal(NamedTuple):
    """A row that did not go in: `kind` is the reason, the same for many rows, `names` are what this row names by it.

    `member` is the file within an archive.
    """

    line: int
    kind: str
    names: tuple[str, ...] = ()
    member: str | None = None

    @property
    def reason(self) -> str:
        """The whole reason in one sentence."""
        found = f"{self.kind}: {', '.join(self.names)}" if self.names else self.kind
        return found if self.member is None else f"{self.member}: {found}"


@dataclass(slots=True)
class Summary:
    """The whole import; `notes` counts by the keys of NOTES, `unused` are columns that fill no field."""

    dry_run: bool
    unused: list[str] = field(default_factory=list)
    rows: int = 0
    counts: dict[str, Counts] = field(default_factory=lambda: {kind: Counts() for kind in KINDS})
    refused: list[Refusal] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
