"""Draw reports as PDF with the template report.typ. The same content always gives the same bytes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from musicsvc.reports import graphs, typesetting, wrapping, writing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from musicsvc.reports.report import Report, ReportDay, ReportRow

JSON = dict[str, Any]
TEMPLATE = "report.typ"
LONGEST_TITLE, LONGEST_NAME, LONGEST_SHORT = 120, 90, 45  # graphemes
WORTH_KEEPING = 0.8  # share of a cut text that must remain to cut it between words
LONG_WORD = 22  # graphemes; longer words may be broken anywhere
STRONGEST_DAYS = 5
EVERYTHING = "All artists"
MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905 - a list of words
)


def render(report: Report) -> bytes:
    return typesetting.pdf(TEMPLATE, page_data(report))


def pages(report: Report, pixels_per_point: float = 1.0) -> list[bytes]:
    """Return the report's pages as PNG."""
    return typesetting.pages(TEMPLATE, page_data(report), pixels_per_point)


def page_data(report: Report) -> JSON:
    """Return the input of the template: formatted texts, and graphs with positions from 0 to 1."""
    made = report.generated_at.astimezone(UTC)
    days, first, last = report.days, report.first, report.last
    return {
        "title": _named(report.name or EVERYTHING, LONGEST_TITLE),
        "short": writing.drawable(_cut(report.name or EVERYTHING, LONGEST_SHORT)),
        "period": _span(first, last),
        "days": len(days),
        "made": f"{_day(made.date())}, {made:%H:%M} UTC",
        "date": [made.year, made.month, made.day],
        "quiet": not report.plays,
        "cards": _cards(report),
        "facts": _facts(report),
        "graphs": [
            graphs.graph("Plays by day", [day.plays for day in days], first, last),
            graphs.graph("Listeners by day", [day.listeners for day in days], first, last),
        ],
        "tables": [
            _table("Most played tracks", "Track", report.top_tracks, artists=True),
            _table("Most played albums", "Album", report.top_albums, artists=True),
            _table("Most played artists", "Artist", report.top_artists, artists=False),
        ],
        "strongest": _strongest(days, first),
    }


def _cards(report: Report) -> list[JSON]:
    return [
        _card("Plays", report.plays, report.plays_change),
        _card("Listeners", report.listeners, report.listeners_change),
        _card("Likes", report.likes) | {"note": "given in these days"},
        _card("Reposts", report.reposts) | {"note": "given in these days"},
    ]


def _card(label: str, value: int, change: float | None = None) -> JSON:
    note = "no earlier days to compare" if change is None else "against the days before"
    return {"label": label, "value": f"{value:,}", "change": _change(change), "note": note}


def _change(change: float | None) -> JSON | None:
    """Return a change in percent as formatted text with its direction: `up`, `down` or `same`."""
    if change is None:
        return None
    sign = "+" if change > 0 else "\u2212" if change < 0 else ""
    return {"text": f"{sign}{abs(change):,.1f} %", "mood": "up" if change > 0 else "down" if change < 0 else "same"}


def _facts(report: Report) -> list[JSON]:
    facts = {
        "Plays of all time": report.plays_total,
        "Listeners of all time": report.listeners_total,
        "Artists": report.artists,
        "Albums": report.albums,
        "Tracks": report.tracks,
    }
    return [{"label": label, "value": f"{value:,}"} for label, value in facts.items()]


def _table(title: str, noun: str, rows: Sequence[ReportRow], *, artists: bool) -> JSON:
    most = max((row.plays for row in rows), default=0)
    shaped = [
        {
            "name": _named(row.name, LONGEST_NAME),
            "by": _named(", ".join(row.artists), LONGEST_NAME) if artists and row.artists else None,
            "plays": f"{row.plays:,}",
            "share": row.plays / most,
            "listeners": f"{row.listeners:,}",
            "total": f"{row.plays_total:,}",
            "change": _change(row.plays_change),
        }
        for row in rows
    ]
    return {"title": title, "noun": noun, "rows": shaped}


def _strongest(days: Sequence[ReportDay], first: date) -> list[JSON]:
    """Return the days with the most plays, each with its date and counts as text. Most plays first."""
    order = sorted(range(len(days)), key=lambda place: (-days[place].plays, -place))[:STRONGEST_DAYS]
    return [
        {"day": _day(first + timedelta(days=place))}
        | {name: f"{value:,}" for name, value in asdict(days[place]).items()}
        for place in order
        if days[place].plays
    ]


def _named(text: str, longest: int) -> JSON:
    """Return a name for the template: drawable, with at most `longest` graphemes, with direction and language."""
    shown = _cut(writing.drawable(text), longest)
    length = len(writing.graphemes(shown))
    if any(len(writing.graphemes(word)) > LONG_WORD for word in shown.split(" ")):
        shown = wrapping.wrapping(shown).broken
    return {
        "text": shown,
        "rtl": writing.is_rtl(shown),
        "language": writing.language(shown),
        "tall": writing.is_tall(shown),
        "length": length,
    }


def _cut(text: str, longest: int) -> str:
    signs = writing.graphemes(text)
    if len(signs) <= longest:
        return text
    kept = "".join(signs[: longest - 1])
    whole = kept.rpartition(" ")[0]
    return (whole if len(whole) > len(kept) * WORTH_KEEPING else kept).rstrip() + "…"


def _day(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _span(first: date, last: date) -> str:
    """Return a range of days as text. The year of `first` is left out if `last` is in the same year."""
    start = f"{first.day} {MONTHS[first.month - 1]}" if first.year == last.year else _day(first)
    return f"{start} \u2013 {_day(last)}"
