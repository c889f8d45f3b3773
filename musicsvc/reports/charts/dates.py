"""Dates and periods as text, such as `1 Mar 2026`."""

from datetime import date, timedelta

MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905 - a list of words
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS_PER_QUARTER = 3
DASH = " \u2013 "


def day(of: date) -> str:
    return f"{of.day} {_month(of)} {of.year}"


def _month(of: date) -> str:
    return MONTHS[of.month - 1][:3]


def first_plays(of: date) -> str:
    """Return the text that stands instead of growth if the first play is too recent to compare with earlier days."""
    return f"first plays {day(of)}"


def words(first: date, last: date) -> str:
    """Return a range of days in words, such as `1 Mar 2026 to 2 Apr 2026`."""
    return day(last) if first == last else f"{day(first)} to {day(last)}"


def span(first: date, last: date) -> str:
    """Return a range of days as text. The month and the year of `first` are left out if `last` has the same."""
    if first == last:
        return day(last)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}{DASH}{day(last)}"
    start = f"{first.day} {_month(first)}" if first.year == last.year else day(first)
    return f"{start}{DASH}{day(last)}"


def calendar_name(first: date, last: date) -> str | None:
    """Return the name of a range of days that is a month, a quarter or a year, such as `Q3 2026`, else None."""
    after = last + timedelta(days=1)
    months = (after.year - first.year) * 12 + after.month - first.month
    if first.day != 1 or after.day != 1 or (first.month - 1) % months:
        return None
    names = {
        1: f"{MONTHS[first.month - 1]} {first.year}",
        MONTHS_PER_QUARTER: f"Q{first.month // MONTHS_PER_QUARTER + 1} {first.year}",
        12: str(first.year),
    }
    return names.get(months)
