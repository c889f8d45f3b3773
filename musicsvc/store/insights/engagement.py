"""Read the numbers of likes and reposts that tracks, albums and artists got in a range of days and still have."""

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import EngagementDay
from musicsvc.store.plays.periods import Window


class Engagement(NamedTuple):
    """Numbers of likes and of reposts, either by day or by id of the track, album or artist."""

    likes: Counter[int]
    reposts: Counter[int]


def by_subject(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts given in the window, by id of the track, album or artist."""
    return _read(kind, ids, window, by_day=False)


def by_day(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts of all these tracks, albums or artists together, by day of the window."""
    return _read(kind, ids, window, by_day=True)


def _read(kind: int, ids: Collection[int], window: Window, *, by_day: bool) -> Engagement:
    alone = len(ids) == 1
    (which,) = ids if alone else (ids,)
    rows = _given(kind, which, window.first, window.end, by_day=by_day, alone=alone)
    return Engagement(
        Counter({each: int(likes) for each, likes, _ in rows}),
        Counter({each: int(reposts) for each, _, reposts in rows}),
    )


@compiled
def _given(kind: int, which: Any, first: int, end: int, *, by_day: bool, alone: bool) -> Any:
    """Select the likes and reposts of one subject, which takes less time, or of a list."""
    row = EngagementDay
    key = row.day if by_day else row.subject
    subjects = row.subject == which if alone else row.subject.in_(which)
    given = row.select(key, fn.SUM(row.likes), fn.SUM(row.reposts)).group_by(key)
    return given.where(row.kind == kind, subjects, row.day >= first, row.day < end)
