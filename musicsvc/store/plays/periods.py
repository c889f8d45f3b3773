"""Periods of statistics, such as `30-days`, as ranges of whole UTC days."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from musicsvc.clock import DAY, SECOND

EPOCH = date(1970, 1, 1)
SLOT = 30 * SECOND
SLOTS_PER_DAY = DAY // SLOT
DAYS = {"7-days": 7, "30-days": 30, "90-days": 90, "1-year": 365}
TIMEFRAMES = {"7d": "7-days", "30d": "30-days", "90d": "90-days", "1y": "1-year"}
DEFAULT = "30-days"


class Window(NamedTuple):
    """A range of UTC days, `first` to `end` - 1, as numbers of days since 1970-01-01."""

    name: str
    first: int
    end: int

    @property
    def numbers(self) -> range:
        return range(self.first, self.end)

    @property
    def days(self) -> int:
        return self.end - self.first

    @property
    def before(self) -> Window:
        """The range of equal length that ends on the day before `first`."""
        return Window(self.name, self.first - self.days, self.first)

    @property
    def starts(self) -> int:
        """The beginning of the first day, in microseconds since 1970."""
        return self.first * DAY

    @property
    def ends(self) -> int:
        """The end of the last day, in microseconds since 1970."""
        return self.end * DAY


def window(period: str, now: int) -> Window:
    """Return the days of a period such as `30-days`. The last day is the UTC day of `now` (microseconds since 1970)."""
    end = day_of(now) + 1
    return Window(period, end - DAYS[period], end)


def day_of(instant: int) -> int:
    """Return the UTC day of a time in microseconds since 1970. Day 0 is 1970-01-01."""
    return instant // DAY


def to_date(day: int) -> date:
    return EPOCH + timedelta(days=day)
