"""Draw reports as PDF with the template report.typ. The same content always gives the same bytes."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, timedelta

from musicsvc.reports import typesetting, writing
from musicsvc.reports.charts import dates, details, graphs
from musicsvc.reports.report import Report, ReportDay, ReportFigure, ReportRow
from musicsvc.reports.tables import JSON
from musicsvc.reports.wrapping import LONGEST_SHORT, cut, named

TEMPLATE = "report.typ"
A4 = "a4"
PAPERS = {A4: "a4", "letter": "us-letter"}  # as Typst names them
LONGEST_TITLE = 120  # graphemes
STRONGEST_DAYS = 5
EVERYTHING = "All artists"


def render(report: Report, paper: str = A4) -> bytes:
    """Return the report as PDF. `paper`: the paper size, a key of PAPERS."""
    return typesetting.pdf(TEMPLATE, page_data(report, paper))


def pages(report: Report, pixels_per_point: float = 1.0, paper: str = A4) -> list[bytes]:
    """Return the report's pages as PNG."""
    return typesetting.pages(TEMPLATE, page_data(report, paper), pixels_per_point)


def page_data(report: Report, paper: str = A4) -> JSON:
    """Return the input of the template: formatted texts, and graphs with positions from 0 to 1."""
    made = report.generated_at.astimezone(UTC)
    days, first, last, before = report.days, report.first, report.last, report.before
    earlier = None if before is None else before.label
    return {
        "paper": PAPERS[paper],
        "title": named(report.name or EVERYTHING, LONGEST_TITLE),
        "short": writing.drawable(cut(report.name or EVERYTHING, LONGEST_SHORT)),
        "period": dates.calendar_name(first, last) or dates.span(first, last),
        "span": dates.span(first, last),
        "days": "1 day" if len(days) == 1 else f"{len(days):,} days",
        "made": f"{dates.day(made.date())}, {made:%H:%M} UTC",
        "date": [made.year, made.month, made.day],
        "empty": None if report.plays else _advice(report),
        "earlier": earlier,
        "first_plays": any(row.first_plays for row in (*report.top_tracks, *report.top_albums, *report.top_artists)),
        "earlier_days": earlier and _with_article(earlier),
        "unfinished": report.unfinished,
        "partial": before is not None and before.partial,
        "cards": [_card(each, report) for each in report.figures],
        "facts": _facts(report),
        "graphs": _graphs(report),
        "tables": [
            _table("Most played tracks", "Track", report.top_tracks),
            _table("Most played albums", "Album", report.top_albums),
            _table("Most played artists", "Artist", report.top_artists),
        ],
        "strongest": _strongest(days, first),
        "listening": [_card(each, report) for each in report.listening if report.plays],
        "hours": details.hours(report.hours) if report.hours else None,
        "milestones": details.milestones(report.milestones),
        "releases": details.releases(report.releases, report.release_days),
    }


def _graphs(report: Report) -> list[JSON]:
    """Return the graphs of plays and of listeners, or an empty list if there are no plays or only one day."""
    before = report.before
    if len(report.days) == 1:
        return []
    if not report.plays and not (before and any(before.plays)):
        return []
    plays, listeners = zip(*((day.plays, day.listeners) for day in report.days), strict=True)
    return [
        graphs.graph(
            "Plays by day", graphs.Line(report.first, plays, report.unfinished), before.plays if before else ()
        ),
        graphs.graph(
            "Listeners by day",
            graphs.Line(report.first, listeners, report.unfinished),
            before.listeners if before else (),
        ),
    ]


def _advice(report: Report) -> str:
    """Return advice to readers of a report without plays, such as to choose another period."""
    days = f"these {len(report.days):,} days" if len(report.days) > 1 else "this day"
    empty = f"No plays were counted in {days}."
    if not report.plays_total:
        return f"{empty} No plays are recorded yet. Import a history with musicsvc import plays, or send POST /plays."
    if report.last_played is None:
        return f"{empty} Choose another period."
    last = report.last_played
    return f"{empty} The newest plays are from {dates.day(last)}. Choose a period that contains that day."


def _card(found: ReportFigure, report: Report) -> JSON:
    """Return a key figure. One that grows has its growth as note, or the day of the first plays in its place."""
    change, note, earlier = found.change, found.note, None if report.before is None else report.before.label
    if found.grows and report.first_plays:
        change, note = None, dates.first_plays(report.first_plays)
    elif found.grows:
        note = "" if earlier is None else f"vs {earlier}" if change is not None else f"none in {_with_article(earlier)}"
    return {"label": found.title, "value": found.value or details.UNKNOWN, "change": _change(change), "note": note}


def _with_article(earlier: str) -> str:
    return f"the {earlier}" if earlier.startswith("previous") else earlier


def _change(change: float | None) -> JSON | None:
    """Return a change in percent as formatted text with its direction: `up`, `down` or `same`."""
    if change is None:
        return None
    sign = "+" if change > 0 else "\u2212" if change < 0 else ""
    return {"text": f"{sign}{abs(change):,.1f} %", "mood": "up" if change > 0 else "down" if change < 0 else "same"}


def _recent(first_plays: date | None) -> JSON | None:
    """Return the day of the first play, as text in two lines, as it stands instead of a change."""
    return None if first_plays is None else {"text": f"first plays\n{dates.short(first_plays)}", "mood": "recent"}


def _facts(report: Report) -> list[JSON]:
    counts = {"Artists": report.artists, "Albums": report.albums, "Tracks": report.tracks}
    left_out = () if report.artists else ("Artists", "Albums")  # of a report on a track or an album, those without one
    facts = {each.title: each.value for each in report.all_time}
    facts |= {label: f"{count:,}" for label, count in counts.items() if count or label not in left_out}
    return [{"label": label, "value": value} for label, value in facts.items()]


def _table(title: str, noun: str, rows: Sequence[ReportRow]) -> JSON:
    most = max((row.plays for row in rows), default=0)
    shaped = [
        {
            "name": named(row.name),
            "by": named(", ".join(row.artists)) if row.artists else None,
            "plays": f"{row.plays:,}",
            "share": row.plays / most,
            "listeners": f"{row.listeners:,}",
            "total": f"{row.plays_total:,}",
            "change": _recent(row.first_plays) or _change(row.plays_change),
        }
        for row in rows
    ]
    return {"title": title, "noun": noun, "rows": shaped}


def _strongest(days: Sequence[ReportDay], first: date) -> list[JSON]:
    """Return the days with the most plays, each with its date and counts as text. Most plays first."""
    order = sorted(range(len(days)), key=lambda place: (-days[place].plays, -place))[:STRONGEST_DAYS]
    return [
        {"day": dates.day(first + timedelta(days=place))}
        | {name: f"{value:,}" for name, value in asdict(days[place]).items()}
        for place in order
        if days[place].plays
    ]
