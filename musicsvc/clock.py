"""Clocks and instants. An instant is an integer, the microseconds since 1970 in UTC."""

import re
import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 86_400 * SECOND
UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LAST = (datetime(9999, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


class Clock:
    def now(self) -> int:
        return time.time_ns() // 1000

    # The seconds of a clock that never goes back, for timeouts and rate limits.
    monotonic = staticmethod(time.monotonic)


class MovableClock(Clock):
    """A clock that starts at the instant `start` and runs `speed` times as fast as real time, for demos and tests."""

    def __init__(self, start: int, speed: float = 1.0) -> None:
        self.speed = speed
        self.set(start)

    def now(self) -> int:
        """Return the current instant of this clock. The clock stops at the end of the year 9998."""
        start, began = self._origin
        return min(start + int((time.monotonic() - began) * self.speed * SECOND), LAST)

    def set(self, instant: int) -> None:
        """Set the clock to an instant. It runs on from there."""
        self._origin = instant, time.monotonic()  # together, as other threads read the clock

    def advance(self, microseconds: int) -> None:
        """Move the clock forward by `microseconds`, or back if they are negative."""
        start, began = self._origin
        self._origin = start + microseconds, began


class CalendarClock(Clock):
    """A clock whose monotonic time is that of a calendar clock, for rate limits that follow the clock of a demo."""

    def __init__(self, calendar: Clock) -> None:
        self._calendar = calendar

    def now(self) -> int:
        return self._calendar.now()

    def monotonic(self) -> float:
        return self.now() / SECOND


def isoformat(instant: int) -> str:
    """Format the instant like `2026-01-01T00:00:00.000000Z` (docs/api.md, Responses)."""
    return to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_datetime(instant: int) -> datetime:
    return EPOCH + timedelta(microseconds=instant)


def to_date(instant: int) -> date:
    return to_datetime(instant).date()


def parse_date(text: str) -> date:
    """Return the date that a text such as 2026-01-31 names. Raises ValueError."""
    # Check the pattern first, because fromisoformat also accepts 20260131 and 2026-W05-6.
    if not DATE.fullmatch(text):
        raise ValueError("Must be a date such as 2026-01-31.")
    with suppress(ValueError):
        return date.fromisoformat(text)
    raise ValueError("There is no such day.")


def parse(text: str) -> int:
    """Parse an ISO 8601 date or date-time, in UTC unless it has an offset. Raises ValueError if it is malformed."""
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def parse_time_or_age(text: str, now: int) -> int:
    """Parse an ISO 8601 time as `parse` does, or an age such as `24h` before `now`, at most until 1970."""
    try:
        age = parse_duration(text)
    except ValueError:
        return parse(text)
    return max(0, now - age)


def parse_duration(text: str) -> int:
    """Parse a duration such as `90s` or `91d` into microseconds. Raises ValueError if it is malformed."""
    found = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if found is None:
        raise ValueError(f"{text} is not a duration such as 24h")
    return int(found[1]) * UNITS[found[2]]
