"""The data that a printed report shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    """The earlier days that growth compares with, with the plays and listeners of each, and their name (`label`).

    `partial`: the last of them ends at the time of day at which the report was made.
    """

    label: str
    first: date
    last: date
    plays: Sequence[int]
    listeners: Sequence[int]
    partial: bool = False


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One of the most played tracks, albums or artists, with the names of its artists."""

    name: str
    artists: Sequence[str]
    plays: int
    plays_total: int
    listeners: int
    plays_change: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Statistics of an account, an artist or the whole catalog from `first` to `last`, and of all time (`…_total`).

    `unfinished`: the last day was not over. `last_played`: the newest day with plays, if these days have none.
    """

    name: str | None
    first: date
    last: date
    generated_at: datetime
    plays: int
    plays_total: int
    plays_change: float | None
    listeners: int
    listeners_total: int
    listeners_change: float | None
    likes: int
    reposts: int
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
