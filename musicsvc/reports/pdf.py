"""Draw reports as PDF with the template report.typ. The same content always gives the same bytes."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from musicsvc.reports import typesetting, writing
from musicsvc.reports.charts import dates, details, graphs
from musicsvc.reports.tables import JSON
from musicsvc.reports.wrapping import LONGEST_SHORT, cut, named

TEMPLATE = "report.typ"
A4 = "a4"
PAPERS = {A4: "a4", "letter": "us-letter"}  # as Typst names them
LONGEST_TITLE = 120  # graphemes
STRONGEST_DAYS = 5
LINES = ("plays", "listeners")
NOUNS = ("track", "album", "artist")
COUNTS = (*LINES, "likes", "reposts")
EVERYTHING = "All artists"


def render(report: JSON, paper: str = A4) -> bytes:
    """Return the report as PDF. `paper`: the paper size, a key of PAPERS."""
    return typesetting.pdf(TEMPLATE, page_data(report, paper))


def pages(report: JSON, pixels_per_point: float = 1.0, paper: str = A4) -> list[bytes]:
    """Return the report's pages as PNG."""
    return typesetting.pages(TEMPLATE, page_data(report, paper), pixels_per_point)


def page_data(report: JSON, paper: str = A4) -> JSON:
    """Return the input of the template: formatted texts, and graphs with positions from 0 to 1.

    `report`: the figures of a report file as JSON, with what only the pages show (`shapes.exports.printed`).
    """
    made = datetime.fromisoformat(report["generated_at"]).astimezone(UTC)
    days, before, plays = report["charts"]["points"], report["before"], report["summary"]["plays"]["period"]
    first, last = (date.fromisoformat(report["period"][end]) for end in ("start", "end"))
    earlier, title = before and before["label"], report["name"] or EVERYTHING
    tops = _tops(report)
    return {
        "paper": PAPERS[paper],
        "title": named(title, LONGEST_TITLE),
        "short": writing.drawable(cut(title, LONGEST_SHORT)),
        "period": dates.calendar_name(first, last) or dates.span(first, last),
        "span": dates.span(first, last),
        "days": "1 day" if len(days) == 1 else f"{len(days):,} days",
        "made": f"{dates.day(made.date())}, {made:%H:%M} UTC",
        "date": [made.year, made.month, made.day],
        "empty": None if plays else _advice(report),
        "earlier": earlier,
        "first_plays": bool(report["first_plays"]) or any(row["first_plays"] for rows in tops.values() for row in rows),
        "earlier_days": earlier and _with_article(earlier),
        "unfinished": report["unfinished"],
        "partial": before is not None and before["partial"],
        "cards": [_card(each, report) for each in report["cards"]],
        "facts": _facts(report),
        "graphs": _graphs(report, first),
        "tables": [_table(f"Most played {noun}s", noun.capitalize(), rows) for noun, rows in tops.items()],
        "strongest": _strongest(days),
        "listening": [_card(each, report) for each in report["listening_cards"] if plays],
        "hours": details.hours(report["hours"]["hours"]),
        "milestones": details.milestones(report["milestones"]),
        "releases": details.releases(**report["releases"]),
    }


def _tops(report: JSON) -> dict[str, list[JSON]]:
    """Return the rankings by noun. Of one artist at most, a single row would only repeat the key figures."""
    fewest = 1 if report["summary"]["artists_count"] > 1 else 2
    return {noun: rows for noun in NOUNS if len(rows := report[f"top_{noun}s"]) >= fewest}


def _graphs(report: JSON, first: date) -> list[JSON]:
    """Return the graphs of plays and of listeners, or an empty list if there are no plays or only one day."""
    before, days = report["before"] or {"plays": (), "listeners": ()}, report["charts"]["points"]
    if len(days) == 1 or not (report["summary"]["plays"]["period"] or any(before["plays"])):
        return []
    lines = {name: graphs.Line(first, [day[name] for day in days], report["unfinished"]) for name in LINES}
    return [graphs.graph(f"{name.capitalize()} by day", line, before[name]) for name, line in lines.items()]


def _advice(report: JSON) -> str:
    """Return advice to readers of a report without plays, such as to choose another period."""
    days = len(report["charts"]["points"])
    empty = f"No plays were counted in {f'these {days:,} days' if days > 1 else 'this day'}."
    if not report["summary"]["plays"]["total"]:
        return "Nobody has played this yet."
    if report["last_played"] is None:
        return f"{empty} Choose another period."
    last = dates.day(date.fromisoformat(report["last_played"]))
    return f"{empty} The newest plays are from {last}. Choose a period that contains that day."


def _card(found: JSON, report: JSON) -> JSON:
    """Return a key figure. One that grows has its growth as note, or the day of the first plays in its place."""
    change, note, earlier = found["change"], found["note"], report["before"] and report["before"]["label"]
    if found["grows"] and report["first_plays"]:
        change, note = None, dates.first_plays(date.fromisoformat(report["first_plays"]))
    elif found["grows"]:
        note = "" if earlier is None else f"vs {earlier}" if change is not None else f"none in {_with_article(earlier)}"
    return {
        "label": found["title"],
        "value": found["value"] or details.UNKNOWN,
        "change": _change(change),
        "note": note,
    }


def _with_article(earlier: str) -> str:
    return f"the {earlier}" if earlier.startswith("previous") else earlier


def _change(change: float | None) -> JSON | None:
    """Return a change in percent as formatted text with its direction: `up`, `down` or `same`."""
    if change is None:
        return None
    sign = "+" if change > 0 else "\u2212" if change < 0 else ""
    return {"text": f"{sign}{abs(change):,.1f} %", "mood": "up" if change > 0 else "down" if change < 0 else "same"}


def _recent(first_plays: str | None) -> JSON | None:
    """Return the day of the first play, as text in two lines, as it stands instead of a change."""
    if first_plays is None:
        return None
    return {"text": f"first plays\n{dates.day(date.fromisoformat(first_plays))}", "mood": "recent"}


def _facts(report: JSON) -> list[JSON]:
    counts = {name.capitalize(): report["summary"][f"{name}_count"] for name in ("artists", "albums", "tracks")}
    # Of a report on a track or an album, those without one are left out.
    left_out = () if counts["Artists"] else ("Artists", "Albums")
    facts = report["all_time"] | {name: f"{count:,}" for name, count in counts.items() if count or name not in left_out}
    return [{"label": label, "value": value} for label, value in facts.items()]


def _table(title: str, noun: str, rows: Sequence[JSON]) -> JSON:
    most = max((_own(row)["period"] for row in rows), default=0)
    shaped = [
        {
            "name": named(row["name"]),
            "by": named(", ".join(row["artists"])) if row["artists"] else None,
            "code": row["code"],
            "plays": f"{_own(row)['period']:,}",
            "share": _own(row)["period"] / most,
            "of": {name: _of(row, name) for name in ("period", "total")},
            "listeners": f"{row['listeners']['unique']:,}",
            "total": f"{_own(row)['total']:,}",
            "change": _recent(row["first_plays"]) or _change(row["plays_change"]),
        }
        for row in rows
    ]
    return {"title": title, "noun": noun, "rows": shaped}


def _own(row: JSON) -> JSON:
    """Return the plays that a row counts: of an album in the report of an artist, those of the artist's tracks."""
    own: JSON = row["plays"].get("of_artist", row["plays"])
    return own


def _of(row: JSON, name: str) -> str | None:
    """Return all plays of an album as text if only some are the artist's."""
    whole = row["plays"][name]
    return None if whole == _own(row)[name] else f"of {whole:,}"


def _strongest(days: Sequence[JSON]) -> list[JSON]:
    """Return the days with the most plays, each with its date and counts as text. Of equal ones the earliest first."""
    order = sorted((day for day in days if day["plays"]), key=lambda day: (-day["plays"], day["date"]))
    return [
        {"day": dates.day(date.fromisoformat(day["date"]))} | {name: f"{day[name]:,}" for name in COUNTS}
        for day in order[:STRONGEST_DAYS]
    ]
