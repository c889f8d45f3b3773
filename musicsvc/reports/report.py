"""The data that a printed report shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class ReportDay:
    """Counts of one day in a printed report."""

    plays: int
    listeners: int
    likes: int
    reposts: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The preceding days, the basis of growth: their name (`label`), and the plays and listeners of each day.

    `partial`: only a part of the last day counts, up to the time of day at which the report was made.
    """

    label: str
    first: date
    last: date
    plays: Sequence[int]
    listeners: Sequence[int]
    partial: bool


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One of the most played tracks, albums or artists, with the names of its artists.

    `first_plays`: the day of its first play, if that is shown instead of growth.
    """

    name: str
    artists: Sequence[str]
    plays: int
    plays_total: int
    listeners: int
    plays_change: float | None
    first_plays: date | None = None


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A figure with its title and its value as text (None: unknown). `change`: its growth in percent, if it `grows`."""

    title: str
    value: str | None
    note: str = ""
    grows: bool = False
    change: float | None = None


@dataclass(frozen=True, slots=True)
class ReportMilestones:
    """The milestones of a track, album or artist: number of plays and day reached; and its best day with its plays."""

    kind: str
    name: str
    reached: Sequence[tuple[int, date]]
    best: tuple[date, int] | None


@dataclass(frozen=True, slots=True)
class ReportRelease:
    """An album with its plays on each day since the release, and its distinct listeners up to each day.

    `unfinished`: the last of these days was not over.
    """

    name: str
    released: date | None
    plays: Sequence[int]
    listeners: Sequence[int]
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of an account, an artist or the whole catalog from `first` to `last`, and of all time.

    `unfinished`: the last day was not over. `last_played`: the newest day with plays, only if the period has no plays.
    `first_plays`: the day of the first play, if that is shown instead of growth.
    """

    name: str | None
    first: date
    last: date
    generated_at: datetime
    plays: int
    plays_total: int
    figures: Sequence[ReportFigure]
    all_time: Sequence[ReportFigure]
    tracks: int
    albums: int
    artists: int
    days: Sequence[ReportDay]
    top_tracks: Sequence[ReportRow]
    top_albums: Sequence[ReportRow]
    top_artists: Sequence[ReportRow]
    before: Comparison | None = None
    unfinished: bool = False
    last_played: date | None = None
    first_plays: date | None = None
    listening: Sequence[ReportFigure] = ()
    hours: Sequence[Sequence[int]] = ()
    milestones: Sequence[ReportMilestones] = ()
    releases: Sequence[ReportRelease] = ()
    release_days: int = 0
