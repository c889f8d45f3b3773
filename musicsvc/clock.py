"""Time has one door: an injected clock. An instant is an integer of microseconds since 1970 in UTC."""

import time
from datetime import UTC, date, datetime, timedelta

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = (datetime(9999, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


class Clock:
    """The system's clock."""

    def now(self) -> int:
        """The present instant, in microseconds since the epoch."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Seconds of a clock that is never set back, for time-outs and limits."""
        return time.monotonic()


class MovableClock(Clock):
    """A clock that starts at `start` and runs `speed` times as fast, for demos and tests."""

    def __init__(self, start: int, speed: float = 1.0) -> None:
        self._start = start
        self._speed = speed
        self._began = time.monotonic()

    def now(self) -> int:
        """The present instant of this clock, which stops before the calendar ends."""
        return min(self._start + int((time.monotonic() - self._began) * self._speed * SECOND), LAST)

    def restart(self) -> None:
        """Run from its start, from this moment on."""
        self._began = time.monotonic()

    def advance(self, microseconds: int) -> None:
        """Move the clock by so many microseconds; a negative number sets it back."""
        self._start += microseconds


def isoformat(instant: int) -> str:
    """The instant as `2026-01-01T00:00:00.000000Z` (docs/api.md, Answers)."""
    return to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_datetime(instant: int) -> datetime:
    """The instant as an aware datetime in UTC."""
    return EPOCH + timedelta(microseconds=instant)


def to_date(instant: int) -> date:
    """The UTC day on which the instant falls."""
    return to_datetime(instant).date()


def parse(text: str) -> int:
    """The instant of an ISO 8601 date or date-time; without an offset it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)
