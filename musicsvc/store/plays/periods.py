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
WEEK, MONTH, QUARTER, YEAR = 0, 1, 3, 12  # months
MONDAY = -3  # the day 1969-12-29
RELATIVE = {"last-week": WEEK, "this-month": MONTH, "last-month": MONTH, "last-quarter": QUARTER, "last-year": YEAR}
SAME_TIME, SAME_DAY = "up to the same time", "up to the same day"
CALENDAR = re.compile(r"(?P<year>[0-9]{4})(-(?P<month>0[1-9]|1[0-2])|-Q(?P<quarter>[1-4])|-W(?P<week>[0-9]{1,2}))?")
NAMES = (
    "7-days, 30-days, 90-days, 1-year, today, yesterday, last-week, this-month, last-month, last-quarter, last-year,"
    " 2026-W47 (an ISO week), 2026-10, 2026-Q3, 2026 or all"
)


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


class Unit(NamedTuple):
    """An ISO week, a month, a quarter or a year.

    `length`: in months, WEEK for a week. `number`: how many are before it, of weeks since 1969-12-29, of others since
    January of the year 0.
    """

    length: int
    number: int

    @classmethod
    def of(cls, length: int, day: int) -> Unit:
        """Return the week, month, quarter or year of a day."""
        if length == WEEK:
            return cls(WEEK, (day - MONDAY) // 7)
        in_year = to_date(day)
        return cls(length, (12 * in_year.year + in_year.month - 1) // length)

    def after(self, count: int) -> Unit:
        """Return the one that begins `count` weeks, months, quarters or years later."""
        return self._replace(number=self.number + count)

    @property
    def first(self) -> int:
        """The first day. For a month of the year 0, which `date` does not have, it is the last day of that year."""
        if self.length == WEEK:
            return MONDAY + 7 * self.number
        year, month = divmod(self.number * self.length, 12)
        return to_day(date(year, month + 1, 1)) if year else to_day(date.min) - 1

    @property
    def end(self) -> int:
        """The first day after it."""
        return self.after(1).first

    @property
    def name(self) -> str:
        """The name as a period, such as `2026-Q3`."""
        if self.length == WEEK:
            found = to_date(self.first).isocalendar()
            return f"{found.year:04}-W{found.week:02}"
        year, month = divmod(self.number * self.length, 12)
        if self.length == YEAR:
            return f"{year:04}"
        return f"{year:04}-Q{month // QUARTER + 1}" if self.length == QUARTER else f"{year:04}-{month + 1:02}"

    @property
    def label(self) -> str:
        """The name for people, such as `October 2026`."""
        if self.length == WEEK:
            found = to_date(self.first).isocalendar()
            return f"week {found.week} of {found.year}"
        year, month = divmod(self.number * self.length, 12)
        if self.length == YEAR:
            return f"{year}"
        return f"Q{month // QUARTER + 1} {year}" if self.length == QUARTER else f"{date(2000, month + 1, 1):%B} {year}"


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
    found = _named(period, today)
    if found is None:
        raise ValueError(f"{period!r} is not a period. Use {NAMES}.")
    return _of_calendar(period, found, now)


def _named(period: str, today: int) -> Unit | None:
    """Return the week, month, quarter or year of this name, if there is one. Raises ValueError for an unknown week."""
    if period in RELATIVE:
        return Unit.of(RELATIVE[period], today).after(0 if period.startswith("this-") else -1)
    found = CALENDAR.fullmatch(period)
    if found is None or not (year := int(found["year"])):
        return None
    if found["week"]:
        return _week(year, found["week"])
    if found["quarter"]:
        return Unit(QUARTER, 4 * year + int(found["quarter"]) - 1)
    return Unit(MONTH, 12 * year + int(found["month"]) - 1) if found["month"] else Unit(YEAR, year)


def _week(year: int, number: str) -> Unit:
    """Return an ISO week: the first one of a year is the one that has its 4 January."""
    latest = date(year, 12, 28).isocalendar().week
    if len(number) != len("01") or not 1 <= int(number) <= latest:
        raise ValueError(
            f"'{year:04}-W{number}' is not a week. The ISO weeks of {year} are {year:04}-W01 to {year:04}-W{latest}."
        )
    return Unit.of(WEEK, to_day(date.fromisocalendar(year, int(number), 1)))


def between(first: date, last: date, now: int) -> Window:
    """Return the window from one date to another, inclusive. Raises BadDatesError if the dates are not valid.

    A whole month, quarter or year, or the current one up to today, is compared with the previous one. Any other range
    is compared with the same number of days before it.
    """
    check_dates(first, last, now)
    if (found := _calendar_of(to_day(first), to_day(last) + 1, now)) is not None:
        return _of_calendar(CUSTOM, found, now)
    return _against_days_before(CUSTOM, to_day(first), to_day(last), now, f"{first} to {last}")


def _calendar_of(first: int, end: int, now: int) -> Unit | None:
    """Return the month, quarter or year that has these days, or these days up to today, if there is one."""
    for length in (MONTH, QUARTER, YEAR):
        unit = Unit.of(length, first)
        if (first, end) == (unit.first, min(unit.end, day_of(now) + 1)):
            return unit
    return None


def neighbour(window: Window, by: int, now: int) -> Window | None:
    """Return the period just before a window (`by` is -1) or just after it (1), or None if there is no such period.

    Next to a week, month, quarter or year is another one, next to other days as many days, none of them after today.
    """
    today = day_of(now)
    if window.name == ALL:
        return None
    found = _calendar_of(window.first, window.end, now) if window.name == CUSTOM else _named(window.name, today)
    if found is not None:
        unit = found.after(by)
        return _of_calendar(unit.name, unit, now) if _is_past(unit.first, today) else None
    first = window.first + by * window.days
    if not _is_past(first, today):
        return None
    return _against_days_before(CUSTOM, first, min(first + window.days - 1, today), now, "")


def _is_past(day: int, today: int) -> bool:
    return to_day(date.min) <= day <= today


def recent(length: int, count: int, now: int) -> dict[str, str]:
    """Return the labels of the latest weeks, months, quarters or years by name, newest first."""
    latest = Unit.of(length, day_of(now))
    return {unit.name: unit.label for unit in (latest.after(-back) for back in range(count))}


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


def _of_calendar(name: str, unit: Unit, now: int) -> Window:
    """Return the window of a week, month, quarter or year, which ends today at the latest.

    The window is compared with the one before. If the current one is not over, only the same time since the beginning
    of the previous one is compared.
    """
    first, today, previous = unit.first, day_of(now), unit.after(-1)
    if first > today:
        raise ValueError(f"{name} begins after today.")
    elapsed = (first - previous.first) * DAY if unit.end <= today else now - first * DAY
    before = _earlier("", previous.first, first, elapsed)
    if before is not None:
        before = before._replace(label=previous.label if before.end == first else f"{previous.label} {SAME_TIME}")
    return Window(name, first, min(unit.end, today + 1), unit.label, before)


def _earlier(label: str, first: int, end: int, elapsed: int) -> Window | None:
    """Return the window of the first `elapsed` microseconds of the days `first` to `end` - 1, or None before year 1."""
    if first < to_day(date.min):
        return None
    days, rest = divmod(elapsed, DAY)
    if first + days >= end:
        return Window("", first, end, label)
    return Window("", first, first + days, label, seconds=rest // SECOND)


def day_of(instant: int) -> int:
    """Return the UTC day of a time in microseconds since 1970. Day 0 is 1970-01-01."""
    return instant // DAY


def to_date(day: int) -> date:
    return EPOCH + timedelta(days=day)


def to_day(day: date) -> int:
    return (day - EPOCH).days
