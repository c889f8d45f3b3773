"""Cells with lengths of time."""

import re
from datetime import time, timedelta
from decimal import Decimal
from typing import Any

from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.numbers import number, whole

CLOCK = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-5][0-9])(?:[.,]([0-9]{1,3}))?")
MINUTE, HOUR = 60, 3600
LONGEST_DURATION = 86_400_000  # milliseconds


def milliseconds(value: Any) -> int | None:
    """Parse a duration in milliseconds."""
    return whole(value, 0, LONGEST_DURATION)


def seconds(value: Any) -> int | None:
    """Parse a duration in seconds. Returns milliseconds."""
    found = number(value)
    return None if found is None else milliseconds(found * 1000)


def clock(value: Any, *, shifted: bool = False) -> int | None:
    """Parse a duration such as 3:45 or 1:02:03. Returns milliseconds. Raises ValueError for anything else.

    `shifted`: times of a workbook have hours and minutes in place of minutes and seconds.
    """
    if is_blank(value):
        return None
    if isinstance(value, time | timedelta):
        length = span(value)
        if shifted and length % MINUTE:
            raise ValueError("must be a duration as m:ss, which the workbook holds as hours and minutes in this column")
        return milliseconds(Decimal(str(length / MINUTE if shifted else length)) * 1000)
    match = CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[1] and int(match[2]) >= MINUTE):
        raise ValueError("must be a duration as m:ss or h:mm:ss, like most of its column")
    whole_seconds = int(match[1] or 0) * HOUR + int(match[2]) * MINUTE + int(match[3])
    return milliseconds(whole_seconds * 1000 + int((match[4] or "").ljust(3, "0")))


def clock_text(length: float) -> str:
    """Return a duration in seconds as h:mm:ss."""
    whole_seconds, rest = divmod(round(length * 1000), 1000)
    minutes, of_minute = divmod(whole_seconds, MINUTE)
    fraction = f".{rest:03}" if rest else ""
    return f"{minutes // MINUTE}:{minutes % MINUTE:02}:{of_minute:02}{fraction}"


def span(value: time | timedelta) -> float:
    """Return the seconds of a time of day, or of a duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour * HOUR + value.minute * MINUTE + value.second + value.microsecond / 1_000_000
