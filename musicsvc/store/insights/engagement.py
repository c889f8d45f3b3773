"""Read the numbers of likes and reposts that tracks, albums and artists got in a range of days and still have."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import Window

GIVEN = """
    SELECT {key}, SUM(likes), SUM(reposts) FROM engagement_day
    WHERE kind = ? AND subject {subjects} AND day >= ? AND day < ? GROUP BY {key}
"""


class Engagement(NamedTuple):
    """Numbers of likes and of reposts, either by day or by id of the track, album or artist."""

    likes: Counter[int]
    reposts: Counter[int]


def by_subject(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts given in the window, by id of the track, album or artist."""
    return _read("subject", kind, ids, window)


def by_day(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts of all these tracks, albums or artists together, by day of the window."""
    return _read("day", kind, ids, window)


def _read(key: str, kind: int, ids: Collection[int], window: Window) -> Engagement:
    condition, value = subjects.among(ids)
    rows = fetch(GIVEN.format(key=key, subjects=condition), kind, value, window.first, window.end)
    return Engagement(
        Counter({each: int(likes) for each, likes, _ in rows}),
        Counter({each: int(reposts) for each, _, reposts in rows}),
    )
