"""Windows of whole UTC days: the only place that defines the days of a period."""

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
    """The days `first` to `end` - 1, numbered from 1970-01-01."""

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
        """The window of equal length that ends the day before this one begins."""
        return Window(self.name, self.first - self.days, self.first)

    @property
    def starts(self) -> int:
        """The first instant of the window."""
        return self.first * DAY

    @property
    def ends(self) -> int:
        """The first instant after the window."""
        return self.end * DAY


def window(period: str, now: int) -> Window:
    """Return the window of a period such as `30-days`; its last day is the UTC day of `now`."""
    end = day_of(now) + 1
    return Window(period, end - DAYS[period], end)


def day_of(instant: int) -> int:
    """Return the number of the UTC day of an instant; 1970-01-01 is day 0."""
    return instant // DAY


def to_date(day: int) -> date:
    return EPOCH + timedelta(days=day)
