"""The plays number 100, 1,000, 10,000 and so on of a track, album or artist, and the day with the most plays."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import histograms, monthly
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.store.plays.subjects import Subject

FIRST, FACTOR = 100, 10
MONTHS = "SELECT block FROM play_block WHERE kind = ? AND subject = ? AND block < ?"
DAYS = "SELECT day, plays FROM play_day WHERE day {days} AND kind = ? AND subject = ? ORDER BY day"
HISTOGRAM = "SELECT histogram FROM play_day WHERE day = ? AND kind = ? AND subject = ?"
# CROSS JOIN: SQLite reads the tables in this order, so only the plays of these tracks, by their index of days.
PLAYS = {
    TRACK: "SELECT p.played_at FROM play p WHERE p.track_id = ?",
    ALBUM: "SELECT p.played_at FROM track t CROSS JOIN play p WHERE t.album_id = ? AND p.track_id = t.id",
    ARTIST: """
        SELECT p.played_at FROM track_artist l CROSS JOIN play p WHERE l.artist_id = ? AND p.track_id = l.track_id
    """,
}
PLAY = f"""
    {{plays}} AND p.slot / {SLOTS_PER_DAY} = ? AND p.slot >= ? AND p.slot < ? ORDER BY p.played_at LIMIT 1 OFFSET ?
"""


class Milestone(NamedTuple):
    """The time of a play, by its number in order of time, from 1."""

    number: int
    at: int


class BestDay(NamedTuple):
    """The day (since 1970-01-01) with the most plays; the first one if several have as many."""

    day: int
    plays: int


class Milestones(NamedTuple):
    """All milestones reached, and the best day, or None without plays."""

    plays: list[Milestone]
    best_day: BestDay | None


def build(subject: Subject) -> Milestones:
    """Return the milestones of all time of a track, album or artist.

    If the single plays of a day were deleted, a milestone on that day has the beginning of its hour.
    """
    watermark = monthly.watermark()
    days, values = dialect.in_list(_days(subject, watermark))
    counts = [BestDay(*row) for row in fetch(DAYS.format(days=days), values, *subject)]
    found = [
        Milestone(number, _time(subject, day, place, watermark.kept_from)) for number, day, place in _reached(counts)
    ]
    return Milestones(found, max(counts, key=lambda each: each.plays, default=None))


def _days(subject: Subject, watermark: monthly.Watermark) -> list[int]:
    months = fetch(MONTHS, *subject, watermark.month)
    return [day for (month,) in months for day in monthly.days_of(month)] + [*monthly.open_days(watermark)]


def _reached(counts: list[BestDay]) -> Iterator[tuple[int, int, int]]:
    """Yield (number of the play, its day, its place among the plays of this day, from 0) of each milestone."""
    goal = FIRST
    for (day, plays), total in zip(counts, accumulate(each.plays for each in counts), strict=True):
        while total >= goal:
            yield goal, day, goal - 1 - (total - plays)
            goal *= FACTOR


def _time(subject: Subject, day: int, place: int, kept_from: int) -> int:
    """Return the time of the day's play at this place, from 0, or the beginning of its hour."""
    ((packed,),) = fetch(HISTOGRAM, day, *subject)
    hours = list(accumulate(_hours(packed, day)))
    hour = next((hour for hour, plays in enumerate(hours) if place < plays), 0)
    if day >= kept_from:
        first = day * SLOTS_PER_DAY + hour * histograms.SLOTS_PER_HOUR
        slots = first, first + histograms.SLOTS_PER_HOUR
        earlier = hours[hour - 1] if hour else 0
        for (at,) in fetch(PLAY.format(plays=PLAYS[subject.kind]), subject.id, day, *slots, place - earlier):
            return int(at)
    return day * DAY + hour * HOUR


def _hours(packed: bytes, day: int) -> list[int]:
    """Return the plays of the 24 hours of a day."""
    first = (day * 24 + histograms.FIRST_HOUR) % histograms.HOURS
    return histograms.unpack([packed]).hours[first : first + 24]
