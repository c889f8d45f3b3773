"""Expected figures of listening, hours, milestones and releases, counted from single plays with plain lists and sets.

It shares no code with the program.
"""

import statistics
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from tests.support.oracle import PlayOf, rounded

JSON = dict[str, Any]


def time(play: PlayOf) -> datetime:
    return datetime.fromtimestamp(play.at // 1_000_000, UTC)


def listening(plays: list[PlayOf], lengths: dict[int, int], first: date, last: date) -> JSON:
    """Return the figures of the days `first` to `last`; `plays` are all plays of the subject."""
    within = [play for play in plays if first <= time(play).date() <= last]
    before = {play.listener for play in plays if time(play).date() < first}
    people = {play.listener for play in within}
    measured = [
        (play.duration_ms, lengths[play.track])
        for play in within
        if play.duration_ms is not None and lengths[play.track] > 0
    ]
    shares = [min(100, heard * 100 // length) for heard, length in measured]
    return {
        "plays_with_duration": len(measured),
        "skips": sum(heard < 30_000 and heard / length < 0.5 for heard, length in measured),
        "completion": {
            "mean": rounded(Fraction(sum(shares), len(shares)), 1) if shares else None,
            "median": statistics.median(shares) if shares else None,
        },
        "plays_per_listener": rounded(Fraction(len(within), len(people)), 2) if people else None,
        "new_listeners": len(people - before),
        "returning_listeners": len(people & before),
    }


def hours(plays: list[PlayOf], first: date, last: date) -> list[list[int]]:
    """Return the plays of the days `first` to `last` by day of the week and hour."""
    rows = [[0] * 24 for _ in range(7)]
    for play in plays:
        if first <= time(play).date() <= last:
            rows[time(play).weekday()][time(play).hour] += 1
    return rows


def milestones(plays: list[PlayOf]) -> JSON:
    """Return the times of the plays number 100, 1,000 and so on, and the best day."""
    times = sorted(play.at for play in plays)
    counts = [count for count in (100, 1_000, 10_000, 100_000) if count <= len(times)]
    days = Counter(time(play).date() for play in plays)
    best = min(days, key=lambda day: (-days[day], day), default=None)
    return {
        "plays": [{"count": count, "at": stamp(times[count - 1])} for count in counts],
        "best_day": best and {"date": best.isoformat(), "plays": days[best]},
    }


def stamp(instant: int) -> str:
    """Return the time as the API shows it."""
    seconds, rest = divmod(instant, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}Z"


def release(plays: list[PlayOf], released: date, days: int, today: date) -> list[JSON]:
    """Return the points of an album, one for each day from its release on, up to today."""
    heard = [(time(play).date(), play.listener) for play in plays]
    points = []
    for day in range(days):
        at = released + timedelta(days=day)
        if at <= today:
            since = {listener for when, listener in heard if released <= when <= at}
            points.append({"day": day, "plays": [when for when, _ in heard].count(at), "listeners": len(since)})
    return points
