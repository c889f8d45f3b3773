"""A subject's plays, listeners, likes and reposts day by day, and those of the whole window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights.figures import OF_TRACKS
from musicsvc.store.plays.rollups import days_reader, listeners

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window
    from musicsvc.store.plays.rollups.reader import Subject

GIVEN = f"""
    SELECT created_at / {DAY}, COUNT(*) FROM {{table}} WHERE {{those}} AND created_at >= ? AND created_at < ?
    GROUP BY created_at / {DAY}
"""  # noqa: S608 - constants


class Point(NamedTuple):
    """Some days: their plays, distinct listeners, and the likes and reposts given that still stand."""

    plays: int
    listeners: int
    likes: int
    reposts: int


class Chart(NamedTuple):
    """A point for each day of the window, and the point that the whole window is, which is no sum of listeners."""

    window: Window
    points: list[Point]
    totals: Point


def of(subject: Subject, window: Window) -> Chart:
    """The chart of the window, days without any plays included."""
    heard = {day: (plays, packed) for day, plays, packed in days_reader.days(*subject, window.first, window.end)}
    likes, reposts = (_given(table, subject, window) for table in ("track_like", "track_repost"))
    points = []
    for day in range(window.first, window.end):
        plays, packed = heard.get(day, (0, b""))
        points.append(Point(plays, listeners.count(packed), likes.get(day, 0), reposts.get(day, 0)))
    whole = days_reader.over(*subject, window.first, window.end)
    totals = Point(whole.plays, len(whole.listeners), sum(likes.values()), sum(reposts.values()))
    return Chart(window, points, totals)


def _given(table: str, subject: Subject, window: Window) -> dict[int, int]:
    """How many were given on each day that has any."""
    statement = GIVEN.format(table=table, those=OF_TRACKS[subject.kind])
    return dict(fetch(statement, subject.id, window.starts, window.ends))
