"""Build the JSON of the endpoints of listening, hours, milestones and releases (docs/insights.md)."""

from collections.abc import Sequence

from musicsvc.clock import isoformat
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.insights import nested, period
from musicsvc.store.insights.listening.listening import LISTENING, Hours, Listening
from musicsvc.store.insights.listening.milestones import Milestones
from musicsvc.store.insights.listening.releases import Release, open_day
from musicsvc.store.plays.periods import to_date


def listening(found: Listening) -> JSON:
    """Return skips, completion, and new and returning listeners as JSON."""
    return {"period": period(found.window)} | nested(LISTENING, found)


def hours(found: Hours) -> JSON:
    return {"period": period(found.window), "timezone": "UTC", "hours": found.plays}


def milestones(found: Milestones) -> JSON:
    best = found.best_day
    return {
        "plays": [{"count": each.number, "at": isoformat(each.at)} for each in found.plays],
        "best_day": best and {"date": to_date(best.day).isoformat(), "plays": best.plays},
    }


def releases(found: Sequence[Release], days: int) -> JSON:
    shaped = [each._asdict() | {"points": [point._asdict() for point in each.points]} for each in found]
    return {"days": days, "releases": shaped}


def releases_until(now: int, found: Sequence[Release], days: int) -> JSON:
    """Return the points of each release, and as `open` the day that is not over, or None."""
    shaped = releases(found, days)
    for data, release in zip(shaped["releases"], found, strict=True):
        data["open"] = open_day(release, now)
    return shaped
