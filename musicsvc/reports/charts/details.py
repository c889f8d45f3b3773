"""Input of the report's template: listening, hours of the week, milestones, and a comparison of releases."""

from collections.abc import Sequence
from datetime import date, datetime

from musicsvc.reports.charts import dates, graphs
from musicsvc.reports.tables import JSON
from musicsvc.reports.wrapping import LONGEST_SHORT, named

# The background and the text of a cell of the heat map, by its share of the highest one. Their contrast is 4.5 : 1.
LEVELS = (
    ("#ffffff", "#5b6879"),
    ("#ebe7fa", "#16202e"),
    ("#cec4f2", "#16202e"),
    ("#a897e6", "#16202e"),
    ("#5136c4", "#ffffff"),
    ("#32207f", "#ffffff"),
)
CELL, LARGEST, SIGN = 17.5, 7.5, 0.58  # points: the width of a cell, its largest text; the width of a digit in em
MOST_NUMBERS = 4  # columns of milestones; the highest ones
LINES = ("#5136c4", "#b04a00", "#00707c", "#a8327d", "#4d6b00")  # colours, those of the pages
# Lengths of dashes and gaps in points, so that the ten lines differ without colour; the first line has none.
DASHES = (
    (),
    (6, 3),
    (0.1, 3),
    (9, 3, 0.1, 3),
    (3, 3),
    (14, 4),
    (9, 3, 0.1, 3, 0.1, 3),
    (14, 3, 4, 3),
    (0.1, 6),
    (4, 3, 0.1, 3, 0.1, 3, 0.1, 3),
)
ALBUMS_PER_TABLE = 4
MOST_ROWS = 28  # of a table of releases; more days are left out between
DAY_STEPS = (1, 2, 5, 7, 14, 28, 56)
MOST_LABELS = 8
UNKNOWN = "\u2013"


def hours(plays: Sequence[Sequence[int]]) -> JSON | None:
    """Return a heat map of the plays by day of the week and hour, or None without plays."""
    most = max(max(row) for row in plays)
    if not most:
        return None
    day = next(day for day, row in enumerate(plays) if most in row)
    return {
        "most": f"{most:,} on {dates.WEEKDAYS[day]}s from {plays[day].index(most):02}:00",
        "size": min(LARGEST, CELL / SIGN / len(str(most))),
        "rows": [
            {"day": name[:3], "cells": [_cell(count, most) for count in row], "total": f"{sum(row):,}"}
            for name, row in zip(dates.WEEKDAYS, plays, strict=True)
        ],
    }


def _cell(count: int, most: int) -> JSON:
    fill, ink = LEVELS[-(-count * (len(LEVELS) - 1) // most)]
    return {"text": str(count), "fill": fill, "ink": ink}


def milestones(found: Sequence[JSON]) -> JSON | None:
    """Return a table: the days of the 100th, 1,000th, … play of each track, album and artist, and its best day."""
    numbers = sorted({each["count"] for row in found for each in row["plays"]})[-MOST_NUMBERS:]
    rows = [
        {
            "name": named(row["name"], LONGEST_SHORT),
            "kind": row["kind"],
            "reached": [_short(reached[number]) if number in reached else UNKNOWN for number in numbers],
            "best": f"{_short(row['best_day']['date'])}: {row['best_day']['plays']:,}",
        }
        for row in found
        if row["best_day"] is not None
        for reached in ({each["count"]: each["at"] for each in row["plays"]},)
    ]
    return {"numbers": [f"{number:,}" for number in numbers], "rows": rows} if rows else None


def _short(text: str) -> str:
    """Return the day of a date or time in ISO 8601."""
    return dates.day(datetime.fromisoformat(text))


def releases(releases: Sequence[JSON], days: int) -> JSON | None:
    """Return a graph of the plays by day since the release, and tables of plays and listeners, or None if empty."""
    shown = max((len(each["points"]) for each in releases), default=0)
    if not shown:
        return None
    most = max(point["plays"] for each in releases for point in each["points"])
    scale = graphs.nice_step(most)
    ticks = max(1, -(-most // scale))
    width = max(shown - 1, 1)
    step = next((step for step in DAY_STEPS if (shown - 1) // step < MOST_LABELS), DAY_STEPS[-1])
    return {
        "days": days,
        "lines": [
            _line(each, place, [[of["day"] / width, of["plays"] / (scale * ticks)] for of in each["points"]])
            for place, each in enumerate(releases)
        ],
        "ticks": [{"at": tick / ticks, "label": f"{tick * scale:,}"} for tick in range(ticks + 1)],
        "labels": [{"at": day / width, "label": f"day {day}"} for day in range(0, shown, step)],
        "tables": [
            _release_table(releases[start : start + ALBUMS_PER_TABLE], start)
            for start in range(0, len(releases), ALBUMS_PER_TABLE)
        ],
    }


def _line(of: JSON, place: int, points: list[list[float]]) -> JSON:
    released, unfinished = of["release_date"], of["open"] is not None
    return {
        "name": named(of["name"], LONGEST_SHORT),
        "date": "no release date" if released is None else dates.day(date.fromisoformat(released)),
        "colour": LINES[place % len(LINES)],
        "dash": DASHES[place % len(DASHES)],
        "points": points[:-1] if unfinished else points,
        "open": points[-2:] if unfinished else [],
    }


def _release_table(found: Sequence[JSON], start: int) -> JSON:
    """Return a table of each album's plays per day since its release, and its distinct listeners up to that day."""
    shown = max(len(each["points"]) for each in found)
    step = -(-shown // MOST_ROWS)
    return {
        "first": start,
        "count": len(found),
        "step": step,
        "rows": [
            [str(day)]
            + [
                f"{each['points'][day][name]:,}" if day < len(each["points"]) else UNKNOWN
                for each in found
                for name in ("plays", "listeners")
            ]
            for day in range(0, shown, max(step, 1))
        ],
        "totals": [f"{sum(point['plays'] for point in each['points']):,}" for each in found],
    }
