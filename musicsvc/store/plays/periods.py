"""Convert periods of figures, such as `30-days`, `last-month` or two dates, to windows: ranges of UTC days.

Each window has the earlier window that it is compared with (docs/insights.md, Growth).
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from musicsvc.clock import DAY, SECOND

EPOCH = date(1970, 1, 1)
SLOT = 30 * SECOND
SLOTS_PER_DAY = DAY // SLOT
DAYS = {"7-days": 7, "30-days": 30, "90-days": 90, "1-year": 365}
TIMEFRAMES = {"7d": "7-days", "30d": "30-days", "90d": "90-days", "1y": "1-year"}
DEFAULT = "30-days"
ALL = "all"
CUSTOM = "custom"
LONGEST = 36_600  # days
MONTH, QUARTER, YEAR = 1, 3, 12  # months
SAME_TIME, SAME_DAY = "up to the same time", "up to the same day"
CALENDAR = re.compile(r"(?P<year>[0-9]{4})(-(?P<month>0[1-9]|1[0-2])|-Q(?P<quarter>[1-4]))?")
NAMES = "7-days, 30-days, 90-days, 1-year, today, yesterday, this-month, last-month, 2026-10, 2026-Q3, 2026 or all"


class BadDatesError(ValueError):
    """Two dates are not a valid period. `field` is the invalid one: `from` or `to`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Window(NamedTuple):
    """A range of UTC days, `first` to `end` - 1, as numbers of days since 1970-01-01.

    Growth is measured against an earlier window (`before`). If the last day of a window is not over, the earlier window
    is just as long: after its whole days, it has the first `seconds` of the day `end`.
    """

    name: str
    first: int
    end: int
    label: str = ""
    compared_with: Window | None = None
    seconds: int = 0
    whole_day: bool = False  # the last day counts as a whole, although only a part of it should

    @property
    def before(self) -> Window:
        """The earlier window that this window is compared with; a window without days if there is none."""
        return self.compared_with or Window("", self.first, self.first)

    @property
    def numbers(self) -> range:
        return range(self.first, self.end)

    @property
    def days(self) -> int:
        return self.end - self.first

    @property
    def last(self) -> int:
        """The last day of the window. If `seconds` is set, only its first seconds are in the window."""
        return self.end if self.seconds else self.end - 1

    @property
    def starts(self) -> int:
        """The beginning of the first day, in microseconds since 1970."""
        return self.first * DAY

    @property
    def ends(self) -> int:
        """The first instant after the window, in microseconds since 1970."""
        return self.end * DAY + self.seconds * SECOND

    def countable(self, kept_from: int) -> Window:
        """Return this window, extended to whole days if it ends within a day whose single plays were deleted.

        Single plays of days before `kept_from` were deleted, so parts of such a day cannot be counted.
        """
        if self.seconds and self.end < kept_from:
            label = f"{self.label.replace(SAME_TIME, SAME_DAY)}, counted whole"
            return self._replace(end=self.end + 1, label=label, seconds=0, whole_day=True)
        return self


def window(period: str, now: int) -> Window:
    """Return the window of a period, such as `30-days`, `2026-Q3` or `all`, at the time `now`. `all` begins in 1970.

    Raises ValueError if the period is not valid or has not begun.
    """
    today = day_of(now)
    if period in DAYS:
        return _against_days_before(period, today + 1 - DAYS[period], today, now, f"last {DAYS[period]} days")
    if period == ALL:
        return Window(ALL, 0, today + 1, "all time")
    if period in {"today", "yesterday"}:
        day = today if period == "today" else today - 1
        return _against_days_before(period, day, day, now, period)
    return _calendar(period, *_parse(period, today), now)


def _parse(period: str, today: int) -> tuple[int, int]:
    """Return the first month (in months since January of the year 0) and the length of a period, in months."""
    if period in {"this-month", "last-month"}:
        return _month_of(to_date(today)) - (period == "last-month"), MONTH
    found = CALENDAR.fullmatch(period)
    if found is None or not int(found["year"]):
        raise ValueError(f"{period!r} is not a period. Use {NAMES}.")
    january = 12 * int(found["year"])
    if found["quarter"]:
        return january + QUARTER * (int(found["quarter"]) - 1), QUARTER
    return (january + int(found["month"]) - 1, MONTH) if found["month"] else (january, YEAR)


def between(first: date, last: date, now: int) -> Window:
    """Return the window from one date to another, inclusive. Raises BadDatesError if the dates are not valid.

    A whole month, quarter or year, or the current one up to today, is compared with the previous one. Any other range
    is compared with the same number of days before it.
    """
    check_dates(first, last, now)
    if (found := _calendar_of(to_day(first), to_day(last) + 1, now)) is not None:
        return _calendar(CUSTOM, *found, now)
    return _against_days_before(CUSTOM, to_day(first), to_day(last), now, f"{first} to {last}")


def _calendar_of(first: int, end: int, now: int) -> tuple[int, int] | None:
    """Return the first month and the length of the month, quarter or year that has these days up to today, if any."""
    month = _month_of(to_date(first))
    for length in (MONTH, QUARTER, YEAR):
        if month % length == 0 and (first, end) == (_start(month), min(_start(month + length), day_of(now) + 1)):
            return month, length
    return None


def neighbour(window: Window, by: int, now: int) -> Window | None:
    """Return the period just before a window (`by` is -1) or just after it (1), or None if there is no such period.

    Next to a month, quarter or year is another one, next to other days as many days, none of them after today.
    """
    today = day_of(now)
    if window.name == ALL:
        return None
    if window.name not in {*DAYS, "today", "yesterday"} and (found := _calendar_of(window.first, window.end, now)):
        month, length = found[0] + by * found[1], found[1]
        return _calendar(_calendar_name(month, length), month, length, now) if _is_past(_start(month), today) else None
    first = window.first + by * window.days
    if not _is_past(first, today):
        return None
    return _against_days_before(CUSTOM, first, min(first + window.days - 1, today), now, "")


def _is_past(day: int, today: int) -> bool:
    return to_day(date.min) <= day <= today


def recent(length: int, count: int, now: int) -> dict[str, str]:
    """Return the labels of the latest months, quarters or years (of `length` months) by name, newest first."""
    latest = _month_of(to_date(day_of(now))) // length * length
    months = range(latest, latest - count * length, -length)
    return {_calendar_name(month, length): _calendar_label(month, length) for month in months}


def check_dates(first: date, last: date, now: int) -> None:
    """Raise BadDatesError if `last` is before `first` or after today, or if the period is too long."""
    today = to_date(day_of(now))
    if last > today:
        raise BadDatesError("to", f"Must not be after today, {today} in UTC.")
    if first > last:
        raise BadDatesError("from", "Must not be after `to`.")
    if (last - first).days >= LONGEST:
        raise BadDatesError("from", f"The period must have at most {LONGEST:,} days.")


def _against_days_before(name: str, first: int, last: int, now: int, label: str) -> Window:
    """Return the window of the days `first` to `last`, compared with the same number of days just before `first`."""
    days = last + 1 - first
    earlier = "previous day" if days == 1 else f"previous {days:,} days"
    elapsed = (days - 1) * DAY + now % DAY if last == day_of(now) else days * DAY
    return Window(name, first, last + 1, label, _earlier(earlier, first - days, first, elapsed))


def _calendar(name: str, month: int, length: int, now: int) -> Window:
    """Return the window of a month, quarter or year (`length` months from `month` on), which ends today at the latest.

    The window is compared with the previous month, quarter or year. If the current one is not over, only the same time
    since the beginning of the previous one is compared.
    """
    first, today = _start(month), day_of(now)
    if first > today:
        raise ValueError(f"{name} begins after today.")
    end, start_before = _start(month + length), _start(month - length)
    label, earlier = _calendar_label(month, length), _calendar_label(month - length, length)
    if end <= today:
        return Window(name, first, end, label, _earlier(earlier, start_before, first, (first - start_before) * DAY))
    before = _earlier(earlier, start_before, first, now - first * DAY)
    if before is not None and before.end < first:
        before = before._replace(label=f"{earlier} {SAME_TIME}")
    return Window(name, first, today + 1, label, before)


def _earlier(label: str, first: int, end: int, elapsed: int) -> Window | None:
    """Return the window of the first `elapsed` microseconds of the days `first` to `end` - 1, or None before year 1."""
    if first < to_day(date.min):
        return None
    days, rest = divmod(elapsed, DAY)
    if first + days >= end:
        return Window("", first, end, label)
    return Window("", first, first + days, label, seconds=rest // SECOND)


def _calendar_name(month: int, length: int) -> str:
    """Return the name of a month, quarter or year, such as `2026-Q3`."""
    year, index = divmod(month, 12)
    if length == YEAR:
        return f"{year:04}"
    return f"{year:04}-Q{index // QUARTER + 1}" if length == QUARTER else f"{year:04}-{index + 1:02}"


def _calendar_label(month: int, length: int) -> str:
    year, index = divmod(month, 12)
    if length == YEAR:
        return f"{year}"
    if length == QUARTER:
        return f"Q{index // QUARTER + 1} {year}"
    return f"{date(2000, index + 1, 1):%B} {year}"


def _month_of(day: date) -> int:
    """Return the number of months from January of the year 0 to the month of `day`."""
    return 12 * day.year + day.month - 1


def _start(month: int) -> int:
    """Return the first day of a month, given in months since January of the year 0.

    For a month of the year 0, which `date` does not have, return the last day of that year.
    """
    year, index = divmod(month, 12)
    return to_day(date(year, index + 1, 1)) if year else to_day(date.min) - 1


def day_of(instant: int) -> int:
    """Return the UTC day of a time in microseconds since 1970. Day 0 is 1970-01-01."""
    return instant // DAY


def to_date(day: int) -> date:
    return EPOCH + timedelta(days=day)


def to_day(day: date) -> int:
    return (day - EPOCH).days
