"""Show how the figures of an insights response were calculated, as JSON or as text."""

from __future__ import annotations

import typer

from musicsvc.cli import listening, output
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat
from musicsvc.server.shapes import explaining
from musicsvc.store.insights.listening import listening as figures
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.recounting import explain
from musicsvc.wording import quantity

# The lines of text that cannot be recounted after plays of the window, or any plays, were deleted.
OF_WINDOW = ("sum of the days", "whole window", "not in skips")
OF_ALL_TIME = ("all time", "milestones", "best day")


def print_page(session: Session, title: str, found: explain.Explanation) -> None:
    """Print an explanation as text: the period, the plays of each day, their totals, and differences from the API."""
    output.print_record(session, _head(title, found))
    rows = [
        {"day": to_date(day), "plays": f"{plays:,}", "listeners": f"{listeners:,}"}
        for day, (plays, listeners) in sorted(found.counted.days.items())
    ]
    if rows:
        typer.echo()
        output.print_table(session, rows, ("day", "plays", "listeners"))
    typer.echo()
    output.print_record(session, _sums(found))
    typer.echo()
    for line in _result_lines(found):
        typer.echo(line)


def _head(title: str, found: explain.Explanation) -> JSON:
    played = len(found.counted.days)
    quiet = found.window.days - played
    days = f"{played} with plays, {quiet} without" if found.kept.within else explaining.deleted(found)
    return {
        "figures of": title,
        "window": _span(found.window),
        "window before": _span(found.window_before),
        "tracks": f"{found.tracks:,}",
        "single plays": explaining.NOT_STORED,
        "kept from": _kept(found),
        "days": days,
    }


def _span(window: Window) -> str:
    starts, ends = (isoformat(instant)[:19].replace("T", " ") for instant in (window.starts, window.ends))
    return f"{window.label}, {starts} up to, not including, {ends} UTC" if window.label else "none"


def _kept(found: explain.Explanation) -> str:
    if found.kept_from == 0:
        return "the beginning"
    return f"{to_date(found.kept_from)}; older plays were deleted, and figures that include them are not compared"


def _sums(found: explain.Explanation) -> JSON:
    plays, people = (sum(pair[which] for pair in found.counted.days.values()) for which in range(2))
    equals = " =" if found.kept.before else "; the API returns"
    growth = explaining.growth(found)
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
        **listening.lines(explaining.details(found.counted.details)),
        "not in skips": (
            f"{quantity(found.recounted.without_duration, 'play')} without a duration,"
            f" {found.recounted.without_length:,} of tracks of unknown length"
        ),
    }
    kept = dict.fromkeys(OF_WINDOW, found.kept.within) | dict.fromkeys(OF_ALL_TIME, found.kept.ever)
    kept |= {"window before": found.kept.before}
    kept |= {each.title.lower(): found.kept.ever if each.all_time else found.kept.within for each in figures.LISTENING}
    return lines | {name: explaining.deleted(found) for name in lines if not kept.get(name, True)}


def _pair(found: explain.Explanation, days: str) -> str:
    plays, people = explaining.numbers(found, days).values()
    return f"{quantity(plays, 'play')}; {quantity(people, 'listener')}, each counted once"


def _result(percent: float | None) -> str:
    return "null" if percent is None else f"{percent} %"


def _result_lines(found: explain.Explanation) -> list[str]:
    if not found.differences:
        if found.kept.ever:
            return ["The API returns the same figures."]
        if found.kept.within:
            return ["The API returns the same figures, as far as they can be recounted."]
        return ["No figure was compared, because plays of this window were deleted."]
    differences = [f"{each.figure}: served {each.served}, counted {each.counted}" for each in found.differences]
    return [*differences, "The API returns other figures. Repair them with: musicsvc plays recount"]
