"""Compute line graphs for the report's template. Positions are fractions (0 to 1) of width and height."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

JSON = dict[str, Any]
TICKS = 5  # above the base line, at most
LABELS = 6
STEPS = (1, 2, 5, 10)
SHORT = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def graph(title: str, values: Sequence[int], first: date, last: date) -> JSON:
    """Return a line graph as input of the template. `values` has a value for each day; the highest point is marked."""
    most = max(values, default=0)
    step = nice_step(most)
    ticks = max(1, -(-most // step))
    top = step * ticks
    width = max(1, len(values) - 1)
    peak = max(range(len(values)), key=lambda place: values[place], default=0)
    return {
        "title": title,
        "points": [[place / width, value / top] for place, value in enumerate(values)],
        "ticks": [{"at": tick / ticks, "label": f"{tick * step:,}"} for tick in range(ticks + 1)],
        "labels": [_label(place, width, first) for place in _places(len(values))],
        "peak": _peak(peak, values[peak], width, top, first) if values and values[peak] else None,
        "across": f"{_short(first)} {first.year} to {_short(last)} {last.year}",
    }


def nice_step(most: int) -> int:
    """Return the distance between ticks: 1, 2 or 5 times a power of ten. TICKS steps reach at least `most`."""
    size = 1
    while True:
        for step in STEPS:
            if step * size * TICKS >= most:
                return step * size
        size *= 10


def _places(count: int) -> list[int]:
    """Return the indices of the days that get labels: the first, the last and some between them."""
    wanted = min(count, LABELS + 1)
    return sorted({round(each * (count - 1) / max(1, wanted - 1)) for each in range(wanted)})


def _label(place: int, width: int, first: date) -> JSON:
    return {"at": place / width, "label": _short(first + timedelta(days=place))}


def _peak(place: int, value: int, width: int, top: int, first: date) -> JSON:
    label = f"{value:,} on {_short(first + timedelta(days=place))}"
    return {"x": place / width, "y": value / top, "label": label}


def _short(day: date) -> str:
    return f"{day.day} {SHORT[day.month - 1]}"
