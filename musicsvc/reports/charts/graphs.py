"""Compute line graphs for the report's template. Positions are fractions (0 to 1) of width and height."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from musicsvc.reports.charts import dates
from musicsvc.reports.tables import JSON

TICKS = 5  # above the base line, at most
STEPS = (1, 2, 5, 10)
MOST_POINTS = 130  # of a line; more days are drawn as averages of several days
DAYS_PER_POINT = (1, 7, 30, 90, 365)
MOST_LABELS = 8
DAY_STEPS = (1, 2, 5, 7, 10, 15)
LONGEST_IN_DAYS = 100  # days; longer axes have labels on the first of months
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
MONTHS_PER_YEAR = 12


@dataclass(frozen=True, slots=True)
class Line:
    """A value for each day from `first` on. `unfinished`: the last day was not over."""

    first: date
    values: Sequence[int]
    unfinished: bool = False


def graph(title: str, line: Line, before: Sequence[int] = ()) -> JSON:
    """Return a line graph as input of the template. `before`: the values of the earlier days to compare with.

    The highest day is marked. The part of the line that leads to an unfinished day is separate (`open`).
    """
    days = max(len(line.values), len(before), 2) - 1  # from the left edge to the right one
    step = next((each for each in DAYS_PER_POINT if days / each <= MOST_POINTS), DAYS_PER_POINT[-1])
    values, earlier = _averages(line.values, step), _averages(before, step)
    most = math.ceil(max(*values, *earlier, 0, 0))
    scale = nice_step(most)
    ticks = max(1, -(-most // scale))
    points, points_before = _points(values, step / days, scale * ticks), _points(earlier, step / days, scale * ticks)
    return {
        "title": title if step == 1 else f"{title}, averages of {step} days",
        "points": points[:-1] if line.unfinished else points,
        "open": points[-2:] if line.unfinished else [],
        "before": points_before,
        "ticks": [{"at": tick / ticks, "label": f"{tick * scale:,}"} for tick in range(ticks + 1)],
        "labels": labels(line.first, len(line.values), days),
        "peak": _peak(line, points if step == 1 else None),
    }


def _points(values: Sequence[float], step: float, top: int) -> list[list[float]]:
    return [[place * step, value / top] for place, value in enumerate(values)]


def nice_step(most: int) -> int:
    """Return the smallest distance with which TICKS ticks reach `most`: 1, 2 or 5 times a power of ten."""
    size = 1
    while True:
        for step in STEPS:
            if step * size * TICKS >= most:
                return step * size
        size *= 10


def _averages(values: Sequence[int], step: int) -> list[float]:
    """Return the average of each group of `step` days. The days after the last whole group belong to that group."""
    starts = range(0, max(len(values) - step + 1, min(len(values), 1)), step)
    parts = [values[start : start + step] for start in starts[:-1]] + [values[start:] for start in starts[-1:]]
    return [sum(part) / len(part) for part in parts]


def _peak(line: Line, points: Sequence[Sequence[float]] | None) -> JSON | None:
    """Return the label of the day with the highest value, and the label's position. Return None if all values are 0.

    `points`: the position of each day; None if a point stands for several days, then the label has no position.
    """
    place = max(range(len(line.values)), key=lambda each: line.values[each], default=0)
    if not line.values or not line.values[place]:
        return None
    label = f"{line.values[place]:,} on {day_label(line.first, place, len(line.values))}"
    return {"at": points[place] if points else None, "label": label}


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
    text = dates.day(day)
    return text.removesuffix(f" {day.year}") if first.year == last.year and days <= LONGEST_IN_DAYS else text


def _month_starts(first: date, last: date) -> list[tuple[date, str]]:
    """Return evenly spaced first days of months between two days, each with its text: `Jan 2026`, or `2026`."""
    low = first.year * MONTHS_PER_YEAR + first.month - (first.day == 1)  # months since year 0
    high = last.year * MONTHS_PER_YEAR + last.month - 1
    spans = [range(-(-low // step) * step, high + 1, step) for step in MONTH_STEPS]
    numbers = next(span for span in spans if len(span) <= MOST_LABELS)
    starts = [date(number // MONTHS_PER_YEAR, number % MONTHS_PER_YEAR + 1, 1) for number in numbers]
    whole_years = numbers.step % MONTHS_PER_YEAR == 0
    return [(day, str(day.year) if whole_years else dates.day(day).partition(" ")[2]) for day in starts]
