"""Cells with dates."""

import re
from datetime import date
from typing import Any, NamedTuple

from musicsvc.store.importing.cells.blanks import unless_blank

SLASHED = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})")
DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ][0-9]{2}:[0-9:.]{2,}Z?)?)?)?")
MONTHS = 12


class Day(NamedTuple):
    """A date. `padded` is `month` if the cell had only a year, `day` if it had a year and a month, otherwise None."""

    date: str
    padded: str | None


@unless_blank
def day(value: Any) -> Day:
    """Parse a date. A year becomes its January 1, a month its first day. Raises ValueError for anything else."""
    found = value.isoformat()[:10] if isinstance(value, date) else str(value).strip()
    match = DATE.fullmatch(found)
    if match is None and (dotted := SLASHED.fullmatch(found)) and dotted[2] == ".":
        return _day(dotted[4], dotted[3], dotted[1])
    if isinstance(value, bool) or match is None:
        raise ValueError("must be a date: YYYY-MM-DD, DD.MM.YYYY, YYYY-MM or YYYY")
    return _day(*match.groups())


def dated(value: Any, order: str) -> Day | None:
    """Parse a date in a column whose dates have this order: `DMY` or `MDY`. Those that begin with a year are valid."""
    match = SLASHED.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] == ".":
        return day(value)
    first, second = match[1], match[3]
    return _day(match[4], second, first) if order == "DMY" else _day(match[4], first, second)


def slashed(value: Any) -> tuple[int, int] | None:
    """Return the first two numbers of a date such as 10/11/2026, whose order the cell does not say."""
    match = SLASHED.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None or match[2] == "." else (int(match[1]), int(match[3]))


def _day(year: str, month: str | None, of_month: str | None) -> Day:
    try:
        found_date = date(int(year), int(month or 1), int(of_month or 1))
    except ValueError:
        raise ValueError("must be a date that exists") from None
    return Day(found_date.isoformat(), None if of_month else "day" if month else "month")
