"""Labels of time axes: evenly spaced days, months or years, with the year where the axis is long."""

from datetime import date, timedelta
from typing import Any

JSON = dict[str, Any]
MOST_LABELS = 8
DAY_STEPS = (1, 2, 5, 7, 10, 15)
LONGEST_IN_DAYS = 100  # days; longer axes have labels on the first of months
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
MONTHS_PER_YEAR = 12
SHORT = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def labels(first: date, days: int, width: int) -> list[JSON]:
    """Return the labels of a time axis for `days` days from `first`. `width`: the number of days on the whole axis."""
    last = first + timedelta(days=days - 1)
    if days <= LONGEST_IN_DAYS:
        step = next(step for step in DAY_STEPS if (days - 1) // step < MOST_LABELS)
        places = range(0, days, step)
        return [{"at": place / width, "label": day_label(first, place, days)} for place in places]
    starts = _month_starts(first, last)
    return [{"at": (day - first).days / width, "label": text} for day, text in starts]


def day_label(first: date, place: int, days: int) -> str:
    """Return the label of the day `place` days after `first`, with the year if the axis is long or spans two years."""
    day, last = first + timedelta(days=place), first + timedelta(days=days - 1)
    text = f"{day.day} {SHORT[day.month - 1]}"
    return text if first.year == last.year and days <= LONGEST_IN_DAYS else f"{text} {day.year}"


def _month_starts(first: date, last: date) -> list[tuple[date, str]]:
    """Return evenly spaced first days of months between two days, each with its text: `Jan 2026`, or `2026`."""
    low = first.year * MONTHS_PER_YEAR + first.month - (first.day == 1)  # months since year 0
    high = last.year * MONTHS_PER_YEAR + last.month - 1
    spans = [range(-(-low // step) * step, high + 1, step) for step in MONTH_STEPS]
    numbers = next(span for span in spans if len(span) <= MOST_LABELS)
    starts = [date(number // MONTHS_PER_YEAR, number % MONTHS_PER_YEAR + 1, 1) for number in numbers]
    whole_years = numbers.step % MONTHS_PER_YEAR == 0
    return [(day, str(day.year) if whole_years else f"{SHORT[day.month - 1]} {day.year}") for day in starts]
