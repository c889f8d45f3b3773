"""`musicsvc insights release`, and text output of listening, plays by hour and milestones for other commands."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musicsvc.cli import output, sparkline
from musicsvc.cli.options import LARGEST_ID, AsJson, identifier, option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid
from musicsvc.wording import escape_controls, quantity

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window
    from musicsvc.store.plays.subjects import Subject

MOST_DAYS, MOST_ALBUMS = 365, 9
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def release(
    context: typer.Context,
    album: Annotated[int, identifier("album", "ALBUM")],
    against: Annotated[
        list[int] | None,
        option("ALBUM", "Another album to compare with; may be repeated.", "--against", min=1, max=LARGEST_ID),
    ] = None,
    days: Annotated[
        int, option("DAYS", "Days since the release, the release date included.", "--days", min=1, max=MOST_DAYS)
    ] = 28,
    json: AsJson = False,
) -> None:
    """Compare the plays and listeners of albums by the days since their release."""
    from musicsvc.server.shapes import listening as shapes
    from musicsvc.store.insights import figures
    from musicsvc.store.insights.listening import releases
    from musicsvc.store.plays.subjects import ALBUM, Subject

    session = Session.from_context(context)
    ids = list(dict.fromkeys([album, *(against or ())]))
    if len(ids) > MOST_ALBUMS + 1:
        raise typer.BadParameter(f"Use at most {MOST_ALBUMS} albums.", param_hint="--against")

    def unit() -> JSON:
        figures.name(Subject(ALBUM, album))
        releases.require_existing(ids[1:])
        return shapes.releases(releases.build(ids, days, session.clock.now()), days)

    try:
        data = session.read(unit)
    except Invalid as error:
        raise typer.BadParameter(error.errors["against"], param_hint="--against") from None
    if json:
        output.print_json(data)
    else:
        _print_releases(session, data)


def _print_releases(session: Session, data: JSON) -> None:
    found = data["releases"]
    for each in found:
        released = each["release_date"] or "no release date"
        bars = sparkline.draw([point["plays"] for point in each["points"]], len(WEEKDAYS) * 8, sys.stdout.encoding)
        typer.echo(f"{each['id']}: {escape_controls(each['name'])} ({released})  {bars}".rstrip())
    rows = [_day(found, day) for day in range(max(len(each["points"]) for each in found))]
    if rows:
        typer.echo()
        output.print_table(session, rows, rows[0], json=False)


def _day(releases: list[JSON], day: int) -> JSON:
    """Return the table row for a day since the release: each album's plays on that day, and its listeners so far."""
    row: JSON = {"day": day}
    for each in releases:
        point = each["points"][day] if day < len(each["points"]) else None
        row[f"{each['id']}: plays / listeners"] = point and f"{point['plays']:,} / {point['listeners']:,}"
    return row


def answers(subject: "Subject", window: "Window") -> JSON:
    """Return the listening figures, plays by hour and milestones of a track, album or artist, as in API responses."""
    from musicsvc.server.shapes import listening as shapes
    from musicsvc.store.insights.listening import listening, milestones

    return {
        "listening": shapes.listening(listening.build(subject, window)),
        "hours": shapes.hours(listening.hours(subject, window)),
        "milestones": shapes.milestones(milestones.build(subject)),
    }


def lines(data: JSON) -> JSON:
    """Map each title, such as `skips`, to a line of text.

    `data`: the figures of a track, album or artist under the keys `listening` and `milestones`, as in API responses.
    """
    of, reached = data["listening"], data["milestones"]
    best = reached["best_day"]
    share = of["completion"]
    return {
        "skips": f"{of['skips']:,} of {of['plays_with_duration']:,} plays with a known completion",
        "completion": "unknown" if share["mean"] is None else f"mean {share['mean']} %, median {share['median']} %",
        "plays per listener": of["plays_per_listener"],
        "new listeners": f"{of['new_listeners']:,}; returning {of['returning_listeners']:,}",
        "milestones": "; ".join(f"{each['count']:,} on {_minute(each['at'])}" for each in reached["plays"]) or None,
        "best day": best and f"{best['date']}: {quantity(best['plays'], 'play')}",
    }


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


def print_hours(session: Session, hours: list[list[int]]) -> None:
    """Print the plays by hour of the week, a line for each day."""
    rows: list[dict[str, Any]] = [
        {
            "day": name,
            "hours 0 to 23 (UTC)": sparkline.draw(plays, len(plays), sys.stdout.encoding) if any(plays) else None,
            "plays": f"{sum(plays):,}",
            "most at": f"{plays.index(max(plays)):02}:00" if any(plays) else None,
        }
        for name, plays in zip(WEEKDAYS, hours, strict=True)
    ]
    output.print_table(session, rows, rows[0], json=False)
