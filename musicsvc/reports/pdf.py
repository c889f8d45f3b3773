"""The printed report: figures in, a PDF document out; drawn by report.typ, the same for the same figures."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from musicsvc.reports import graphs, typesetting, wrapping, writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSON = dict[str, Any]
TEMPLATE = "report.typ"
LONGEST_TITLE, LONGEST_NAME, LONGEST_SHORT = 120, 90, 45  # graphemes
WORTH_KEEPING = 0.8  # of a text that is cut: so much of it may end at a whole word
LONG_WORD = 22  # graphemes; longer ones may end a line anywhere
STRONGEST_DAYS = 5
NOBODY = "All artists"
MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)


def report(content: Mapping[str, Any]) -> bytes:
    """The report as a PDF document."""
    return typesetting.pdf(TEMPLATE, page_data(content))


def pages(content: Mapping[str, Any], pixels_per_point: float = 1.0) -> list[bytes]:
    """The report's pages as pictures."""
    return typesetting.pages(TEMPLATE, page_data(content), pixels_per_point)


def page_data(content: Mapping[str, Any]) -> JSON:
    """What the template draws: texts as they stand on the page, graphs as shares of their height and width."""
    summary, period = content["summary"], content["period"]
    first, last = date.fromisoformat(period["start"]), date.fromisoformat(period["end"])
    made = datetime.fromisoformat(content["generated_at"]).astimezone(UTC)
    days = content["days"]
    return {
        "title": _named(content["name"] or NOBODY, LONGEST_TITLE),
        "short": writing.drawable(_cut(content["name"] or NOBODY, LONGEST_SHORT)),
        "period": _span(first, last),
        "days": len(days),
        "made": f"{_day(made.date())}, {made:%H:%M} UTC",
        "date": [made.year, made.month, made.day],
        "quiet": not summary["plays"]["period"],
        "cards": _cards(summary),
        "facts": _facts(summary),
        "graphs": [
            graphs.graph("Plays by day", [day["plays"] for day in days], first, last),
            graphs.graph("Listeners by day", [day["listeners"] for day in days], first, last),
        ],
        "tables": [
            _table("Most played tracks", "Track", content["top_tracks"], artists=True),
            _table("Most played albums", "Album", content["top_albums"], artists=True),
            _table("Most played artists", "Artist", content["top_artists"], artists=False),
        ],
        "strongest": _strongest(days, first),
    }


def _cards(summary: JSON) -> list[JSON]:
    growth, engagement = summary["growth"], summary["engagement"]
    return [
        _card("Plays", summary["plays"]["period"], growth["plays_change"]),
        _card("Listeners", summary["listeners"]["unique"], growth["listeners_change"]),
        _card("Likes", engagement["likes"]) | {"note": "given in these days"},
        _card("Reposts", engagement["reposts"]) | {"note": "given in these days"},
    ]


def _card(label: str, value: int, change: float | None = None) -> JSON:
    note = "no earlier days to compare" if change is None else "against the days before"
    return {"label": label, "value": f"{value:,}", "change": _change(change), "note": note}


def _change(change: float | None) -> JSON | None:
    """The text of a growth in percent, and whether it is one."""
    if change is None:
        return None
    sign = "+" if change > 0 else "\u2212" if change < 0 else ""
    return {"text": f"{sign}{abs(change):,.1f} %", "mood": "up" if change > 0 else "down" if change < 0 else "same"}


def _facts(summary: JSON) -> list[JSON]:
    facts = {
        "Plays of all time": summary["plays"]["total"],
        "Listeners of all time": summary["listeners"]["total"],
        "Artists": summary["artists_count"],
        "Albums": summary["albums_count"],
        "Tracks": summary["tracks_count"],
    }
    return [{"label": label, "value": f"{value:,}"} for label, value in facts.items()]


def _table(title: str, noun: str, rows: Sequence[JSON], *, artists: bool) -> JSON:
    most = max((row["plays"] for row in rows), default=0)
    shaped = [
        {
            "name": _named(row["name"], LONGEST_NAME),
            "by": _named(", ".join(row["artists"]), LONGEST_NAME) if artists and row["artists"] else None,
            "plays": f"{row['plays']:,}",
            "share": row["plays"] / most,
            "listeners": f"{row['listeners']:,}",
            "total": f"{row['plays_total']:,}",
            "change": _change(row["plays_change"]),
        }
        for row in rows
    ]
    return {"title": title, "noun": noun, "rows": shaped}


def _strongest(days: Sequence[JSON], first: date) -> list[JSON]:
    """The days with the most plays, the most first."""
    order = sorted(range(len(days)), key=lambda place: (-days[place]["plays"], -place))[:STRONGEST_DAYS]
    return [
        {"day": _day(first + timedelta(days=place))} | {name: f"{days[place][name]:,}" for name in days[place]}
        for place in order
        if days[place]["plays"]
    ]


def _named(text: str, longest: int) -> JSON:
    """A name as it can be drawn, cut where it is very long."""
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
    """Both days, the year once where it is the same."""
    start = f"{first.day} {MONTHS[first.month - 1]}" if first.year == last.year else _day(first)
    return f"{start} \u2013 {_day(last)}"
