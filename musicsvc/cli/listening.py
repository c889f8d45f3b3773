"""`musicsvc insights release`, and text output of listening, plays by hour and milestones for other commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

from musicsvc.cli import output
from musicsvc.cli.options import option, row, row_option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid
from musicsvc.reports.charts.dates import WEEKDAYS
from musicsvc.server.shapes import insights, listening
from musicsvc.store.insights import figures as named
from musicsvc.store.insights.listening import DEFAULT_DAYS, MOST_ALBUMS, MOST_DAYS, milestones, releases
from musicsvc.store.insights.listening import listening as heard
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import Window
from musicsvc.wording import escape_controls, quantity

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"  # for encodings without bars


def draw(numbers: Sequence[float], width: int, encoding: str = "utf-8") -> str:
    """Return one bar per number. With more than `width` numbers, each bar shows the mean of adjacent numbers."""
    if not numbers:
        return ""
    places = min(width, len(numbers))
    ends = [place * len(numbers) // places for place in range(places + 1)]
    heights = [sum(numbers[start:end]) / (end - start) for start, end in pairwise(ends)]
    top = max(heights)
    bars = _bars(encoding)
    return "".join(bars[_step(height, top)] for height in heights)


def _step(height: float, top: float) -> int:
    """Return the index of the bar for `height`: the lowest bar only for 0, the highest bar for `top`."""
    if height <= 0:
        return 0
    return 1 + min(len(BARS) - 2, int(height / top * (len(BARS) - 1)))


def _bars(encoding: str) -> str:
    try:
        BARS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BARS


def release(
    session: Session,
    album: Annotated[int, row("album", "ALBUM")],
    against: Annotated[
        list[int] | None,
        row_option("album", "Another album to compare with; may be repeated.", "--against", metavar="ALBUM"),
    ] = None,
    days: Annotated[
        int, option("DAYS", "Days since the release, the release date included.", "--days", min=1, max=MOST_DAYS)
    ] = DEFAULT_DAYS,
) -> None:
    """Compare the plays and listeners of albums by the days since their release."""
    ids = list(dict.fromkeys([album, *(against or ())]))
    if len(ids) > MOST_ALBUMS + 1:
        raise typer.BadParameter(f"Use at most {MOST_ALBUMS} albums.", param_hint="--against")

    def unit() -> JSON:
        named.name(subjects.Subject(subjects.ALBUM, album))
        releases.require_existing(ids[1:])
        return listening.releases(releases.build(ids, days, session.clock.now()), days)

    try:
        data = session.read(unit)
    except Invalid as error:
        raise typer.BadParameter(error.errors["against"], param_hint="--against") from None
    if session.json:
        output.print_json(data)
    else:
        _print_releases(session, data)


def _print_releases(session: Session, data: JSON) -> None:
    found = data["releases"]
    for each in found:
        released = each["release_date"] or "no release date"
        bars = draw([point["plays"] for point in each["points"]], len(WEEKDAYS) * 8, sys.stdout.encoding)
        typer.echo(f"{each['id']}: {escape_controls(each['name'])} ({released})  {bars}".rstrip())
    rows = [_day(found, day) for day in range(max(len(each["points"]) for each in found))]
    if rows:
        typer.echo()
        output.print_table(session, rows, rows[0])


def _day(releases: list[JSON], day: int) -> JSON:
    """Return the table row for a day since the release: each album's plays on that day, and its listeners so far."""
    row: JSON = {"day": day}
    for each in releases:
        point = each["points"][day] if day < len(each["points"]) else None
        row[f"{each['id']}: plays / listeners"] = point and f"{point['plays']:,} / {point['listeners']:,}"
    return row


def answers(subject: subjects.Subject, window: Window) -> JSON:
    """Return the listening figures, plays by hour and milestones of a track, album or artist, as in API responses."""
    found, hours = heard.build(subject, window)
    return {
        "listening": listening.listening(found),
        "hours": listening.hours(hours),
        "milestones": listening.milestones(milestones.build(subject)),
    }


def lines(data: JSON) -> JSON:
    """Map each title, such as `skips`, to a line of text.

    `data`: the figures of a track, album or artist under the keys `listening` and `milestones`, as in API responses.
    """
    reached = data["milestones"]
    best = reached["best_day"]
    return figures(heard.LISTENING, data["listening"]) | {
        "milestones": "; ".join(f"{each['count']:,} on {_minute(each['at'])}" for each in reached["plays"]) or None,
        "best day": best and f"{best['date']}: {quantity(best['plays'], 'play')}",
    }


def figures(rows: Iterable[named.Figure], data: JSON, growth: Callable[[float | None], str] = str) -> JSON:
    """Map the title of each figure to its line of text. `growth` formats growth as the text after a figure."""
    found = {}
    for each in insights.cards(rows, data):
        grown = growth(each.growth) if each.figure.growth else ""
        text = "; ".join(filter(None, (f"{each.value}{grown}", each.note_text)))
        found[each.figure.title.lower()] = None if each.value is None else text
    return found


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


def print_hours(session: Session, hours: list[list[int]]) -> None:
    """Print the plays by hour of the week, a line for each day."""
    rows: list[dict[str, Any]] = [
        {
            "day": name,
            "hours 0 to 23 (UTC)": draw(plays, len(plays), sys.stdout.encoding) if any(plays) else None,
            "plays": f"{sum(plays):,}",
            "most at": f"{plays.index(max(plays)):02}:00" if any(plays) else None,
        }
        for name, plays in zip(WEEKDAYS, hours, strict=True)
    ]
    output.print_table(session, rows, rows[0])
