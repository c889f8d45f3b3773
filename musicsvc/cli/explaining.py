"""Show how the figures of an insights response were calculated, as JSON or as text."""

from typing import TYPE_CHECKING

import typer

from musicsvc.cli import listening, output
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.store.insights.listening import DEFAULT_DAYS
from musicsvc.wording import quantity

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window
    from musicsvc.store.recounting.explain import Details, Explanation

NOT_STORED = "Repeated and refused plays are reported to the client but not stored; each stored play counts once."
# The lines of text that cannot be recounted after plays of the window, or any plays, were deleted.
OF_WINDOW = ("sum of the days", "whole window", "not in skips")
OF_ALL_TIME = ("all time", "milestones", "best day")


def as_json(found: "Explanation") -> JSON:
    from musicsvc.server.shapes import insights as shapes
    from musicsvc.store.plays.periods import to_date

    return {
        "window": _window(found.window),
        "window_before": _window(found.window_before),
        "tracks": found.tracks,
        "plays_kept_from": to_date(found.kept_from).isoformat() if found.kept_from else None,
        "not_stored": NOT_STORED,
        "not_recounted": _deleted(found),
        "days": [
            {"date": to_date(day).isoformat(), "plays": plays, "listeners": listeners}
            for day, (plays, listeners) in sorted(found.counted.days.items())
        ],
        "counted": {
            "period": _numbers(found, "") if found.kept.within else None,
            "before": _numbers(found, "_before") if found.kept.before else None,
            "all_time": _numbers(found, "_total") if found.kept.ever else None,
        },
        "growth": _growth(found),
        "listening": _listening(found),
        "served": shapes.figures(found.figures),
        "differences": [each._asdict() for each in found.differences],
        "equal": not found.differences,
    }


def print_page(session: Session, title: str, found: "Explanation") -> None:
    """Print an explanation as text: the period, the plays of each day, their totals, and differences from the API."""
    from musicsvc.store.plays.periods import to_date

    output.print_record(_head(title, found), json=False)
    rows = [
        {"day": to_date(day), "plays": f"{plays:,}", "listeners": f"{listeners:,}"}
        for day, (plays, listeners) in sorted(found.counted.days.items())
    ]
    if rows:
        typer.echo()
        output.print_table(session, rows, ("day", "plays", "listeners"), json=False)
    typer.echo()
    output.print_record(_sums(found), json=False)
    typer.echo()
    for line in _result_lines(found):
        typer.echo(line)


def _window(window: "Window") -> JSON:
    return {
        "name": window.name,
        "days": window.days,
        "starts_at": output.format_time(window.starts),
        "ends_at": output.format_time(window.ends),
    }


def _numbers(found: "Explanation", days: str) -> dict[str, int]:
    """Return the recounted plays and listeners. `days`: the end of the fields' names."""
    return {name: getattr(found.recounted, f"{name}{days}") for name in ("plays", "listeners")}


def _growth(found: "Explanation") -> JSON:
    """Map `plays` and `listeners` to their growth: `formula` (text with the actual numbers) and `percent` (served)."""
    from musicsvc.store.insights.figures import change_formula

    within, before = _numbers(found, ""), _numbers(found, "_before")
    return {
        name: {
            "formula": change_formula(plays, before[name]) if found.kept.before else _deleted(found),
            "percent": getattr(found.figures, f"{name}_change"),
        }
        for name, plays in within.items()
    }


def _deleted(found: "Explanation") -> str | None:
    """Return why some figures cannot be recounted, or None if no plays were deleted."""
    from musicsvc.store.plays.periods import to_date

    return None if found.kept.ever else f"cannot be recounted: plays before {to_date(found.kept_from)} were deleted"


def _head(title: str, found: "Explanation") -> JSON:
    played = len(found.counted.days)
    quiet = found.window.days - played
    days = f"{played} with plays, {quiet} without" if found.kept.within else _deleted(found)
    return {
        "figures of": title,
        "window": _span(found.window),
        "window before": _span(found.window_before),
        "tracks": f"{found.tracks:,}",
        "single plays": NOT_STORED,
        "kept from": _kept(found),
        "days": days,
    }


def _span(window: "Window") -> str:
    starts, ends = (str(output.format_time(instant))[:19].replace("T", " ") for instant in (window.starts, window.ends))
    return f"{window.label}, {starts} up to, not including, {ends} UTC" if window.label else "none"


def _kept(found: "Explanation") -> str:
    from musicsvc.store.plays.periods import to_date

    if found.kept_from == 0:
        return "the beginning"
    return f"{to_date(found.kept_from)}; older plays were deleted, and figures that include them are not compared"


def _sums(found: "Explanation") -> JSON:
    from musicsvc.store.insights.listening.listening import LISTENING

    plays, people = (sum(pair[which] for pair in found.counted.days.values()) for which in range(2))
    equals = " =" if found.kept.before else "; the API returns"
    growth = _growth(found)
    lines = {
        "sum of the days": f"{quantity(plays, 'play')}; {quantity(people, 'listener')}, once per day",
        "whole window": _pair(found, ""),
        "window before": _pair(found, "_before"),
        "all time": _pair(found, "_total"),
        **{
            f"growth of {name}": f"{each['formula']}{equals} {_result(each['percent'])}"
            for name, each in growth.items()
        },
        "likes and reposts": (
            f"{found.figures.likes:,} and {found.figures.reposts:,} given in the window and not withdrawn"
        ),
        **listening.lines(_details(found.counted.details)),
        "not in skips": (
            f"{quantity(found.recounted.without_duration, 'play')} without a duration,"
            f" {found.recounted.without_length:,} of tracks of unknown length"
        ),
    }
    kept = dict.fromkeys(OF_WINDOW, found.kept.within) | dict.fromkeys(OF_ALL_TIME, found.kept.ever)
    kept |= {"window before": found.kept.before}
    kept |= {each.title.lower(): found.kept.ever if each.all_time else found.kept.within for each in LISTENING}
    return lines | {name: _deleted(found) for name in lines if not kept.get(name, True)}


def _listening(found: "Explanation") -> JSON:
    from musicsvc.store.insights.listening.listening import LISTENING

    recounted, kept = found.recounted, found.kept
    counted = _details(found.counted.details)
    if not kept.ever:
        counted["listening"] |= {each.path: None for each in LISTENING if each.all_time}
        counted |= {name: None for name in ("milestones", "release") if name in counted}
    if not kept.within:
        counted |= {"listening": None, "hours": None}
    return {
        "plays_without_duration": recounted.without_duration if kept.within else None,
        "plays_of_unknown_length": recounted.without_length if kept.within else None,
        "counted": counted,
        "served": _details(found.served.details),
    }


def _details(found: "Details") -> JSON:
    """Return figures as the API's JSON."""
    from musicsvc.server.shapes import listening as shapes

    of_release = {} if found.release is None else {"release": shapes.releases([found.release], DEFAULT_DAYS)}
    return {
        "listening": shapes.listening(found.listening),
        "hours": shapes.hours(found.hours),
        "milestones": shapes.milestones(found.milestones),
    } | of_release


def _pair(found: "Explanation", days: str) -> str:
    plays, people = _numbers(found, days).values()
    return f"{quantity(plays, 'play')}; {quantity(people, 'listener')}, each counted once"


def _result(percent: float | None) -> str:
    return "null" if percent is None else f"{percent} %"


def _result_lines(found: "Explanation") -> list[str]:
    if not found.differences:
        if found.kept.ever:
            return ["The API returns the same figures."]
        if found.kept.within:
            return ["The API returns the same figures, as far as they can be recounted."]
        return ["No figure was compared, because plays of this window were deleted."]
    differences = [f"{each.figure}: served {each.served}, counted {each.counted}" for each in found.differences]
    return [*differences, "The API returns other figures. Repair them with: musicsvc plays recount"]
