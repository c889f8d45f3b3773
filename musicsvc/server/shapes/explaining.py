"""Build the JSON that shows how the figures of a track, album or artist are calculated (docs/insights.md)."""

from musicsvc.clock import isoformat
from musicsvc.server.shapes import insights, listening
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.insights import figures
from musicsvc.store.insights.figures import change_formula
from musicsvc.store.insights.listening import DEFAULT_DAYS
from musicsvc.store.insights.listening.listening import LISTENING
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.subjects import Subject
from musicsvc.store.recounting.explain import Details, Explanation

NOT_STORED = "Repeated and refused plays are reported to the client but not stored; each stored play counts once."


def explanation(subject: Subject, name: str, found: Explanation) -> JSON:
    """Return the recounted figures of a subject, those of the API, and their differences."""
    return {
        "kind": figures.noun(subject),
        "id": subject.id,
        "name": name,
        "window": _window(found.window),
        "window_before": _window(found.window_before),
        "tracks": found.tracks,
        "plays_kept_from": to_date(found.kept_from).isoformat() if found.kept_from else None,
        "not_stored": NOT_STORED,
        "not_recounted": deleted(found),
        "days": [
            {"date": to_date(day).isoformat(), "plays": plays, "listeners": listeners}
            for day, (plays, listeners) in sorted(found.counted.days.items())
        ],
        "counted": {
            "period": numbers(found, "") if found.kept.within else None,
            "before": numbers(found, "_before") if found.kept.before else None,
            "all_time": numbers(found, "_total") if found.kept.ever else None,
        },
        "growth": growth(found),
        "listening": _listening(found),
        "served": insights.figures(found.figures),
        "differences": [each._asdict() for each in found.differences],
        "equal": not found.differences,
    }


def _window(window: Window) -> JSON:
    return {
        "name": window.name,
        "days": window.days,
        "starts_at": isoformat(window.starts),
        "ends_at": isoformat(window.ends),
    }


def numbers(found: Explanation, days: str) -> dict[str, int]:
    """Return the recounted plays and listeners. `days`: the end of the fields' names."""
    return {name: getattr(found.recounted, f"{name}{days}") for name in ("plays", "listeners")}


def growth(found: Explanation) -> JSON:
    """Map `plays` and `listeners` to their growth: `formula` (text with the actual numbers) and `percent` (served)."""
    within, before = numbers(found, ""), numbers(found, "_before")
    return {
        name: {
            "formula": change_formula(plays, before[name]) if found.kept.before else deleted(found),
            "percent": getattr(found.figures, f"{name}_change"),
        }
        for name, plays in within.items()
    }


def deleted(found: Explanation) -> str | None:
    """Return why some figures cannot be recounted, or None if no plays were deleted."""
    return None if found.kept.ever else f"cannot be recounted: plays before {to_date(found.kept_from)} were deleted"


def _listening(found: Explanation) -> JSON:
    recounted, kept = found.recounted, found.kept
    counted = details(found.counted.details)
    if not kept.ever:
        counted["listening"] |= {each.path: None for each in LISTENING if each.all_time}
        counted |= {name: None for name in ("milestones", "release") if name in counted}
    if not kept.within:
        counted |= {"listening": None, "hours": None}
    return {
        "plays_without_duration": recounted.without_duration if kept.within else None,
        "plays_of_unknown_length": recounted.without_length if kept.within else None,
        "counted": counted,
        "served": details(found.served.details),
    }


def details(found: Details) -> JSON:
    """Return figures as the API's JSON."""
    of_release = {} if found.release is None else {"release": listening.releases([found.release], DEFAULT_DAYS)}
    return {
        "listening": listening.listening(found.listening),
        "hours": listening.hours(found.hours),
        "milestones": listening.milestones(found.milestones),
    } | of_release
