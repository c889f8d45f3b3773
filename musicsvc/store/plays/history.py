"""The first day that has figures, on which the period `all` begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import ALL
from musicsvc.store.plays.subjects import TRACK

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window

FIRST_DAYS = """
    SELECT min(day) FROM play_day UNION ALL SELECT min(day) FROM engagement_day WHERE kind = ? ORDER BY 1
"""


def from_first_day(window: Window) -> Window:
    """Return the window; if its period is `all`, let it begin on the day of the first play, like or repost."""
    if window.name != ALL:
        return window
    first = min((day for (day,) in fetch(FIRST_DAYS, TRACK) if day is not None), default=window.end - 1)
    return window._replace(first=min(first, window.end - 1))
