"""Build the template variables of the pages with figures, from the API's JSON so that both show the same numbers."""

from collections.abc import Sequence
from urllib.parse import urlencode

from musicsvc.reports.charts import dates
from musicsvc.reports.formats import FORMATS
from musicsvc.server.shapes import insights, listening
from musicsvc.server.shapes.envelope import JSON, Site
from musicsvc.store.dashboards.catalog_search import Result, ResultPage
from musicsvc.store.dashboards.comparisons import MOST, ComparedSubject
from musicsvc.store.dashboards.dashboards import Dashboard
from musicsvc.store.dashboards.report_links import MOVING, SharedReport
from musicsvc.store.insights import figures
from musicsvc.store.insights.charts import INTERVALS, Interval
from musicsvc.store.insights.export_rows import Titled
from musicsvc.store.insights.listening import DEFAULT_DAYS
from musicsvc.store.insights.listening.listening import LISTENING
from musicsvc.store.insights.listening.local_hours import IN_UTC, zones
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import CUSTOM, MONTH, QUARTER, WEEK, YEAR, Window, day_of, to_date

# Periods with a link of their own; any other one is chosen by its dates.
PERIODS = {
    "7-days": "7 days",
    "30-days": "30 days",
    "90-days": "90 days",
    "1-year": "1 year",
    "last-week": "Last week",
    "this-month": "This month",
    "last-month": "Last month",
    "all": "All time",
}
CALENDAR = ((MONTH, 12), (QUARTER, 6), (YEAR, 3), (WEEK, 9))  # how many of each there are to choose from
A_YEAR = 366  # days


def period(window: Window, now: int) -> JSON:
    """Return the chosen period, and the other periods to choose from."""
    chosen = chosen_by(window)
    beside = {name: periods.neighbour(window, by, now) for name, by in (("earlier", -1), ("later", 1))}
    return {
        "period": insights.period(window),
        "chosen": chosen,
        "query": urlencode(chosen),
        "periods": PERIODS,
        "moving": MOVING,
        "calendar": [periods.recent(length, count, now) for length, count in CALENDAR],
        "today": to_date(day_of(now)).isoformat(),
    } | {name: urlencode(chosen_by(of)) if of else None for name, of in beside.items()}


def chosen_by(window: Window) -> dict[str, str]:
    """Return the part of a query that chooses a window."""
    found = insights.period(window)
    return {"from": found["start"], "to": found["end"]} if window.name == CUSTOM else {"period": window.name}


def found(results: ResultPage, text: str, page: int, window: Window, now: int) -> JSON:
    """Return a page of the tracks, albums and artists that a search for `text` found, with links to other pages."""
    shaped = period(window, now)
    rows = [named(each) | {"plays": each.plays, "plays_total": each.plays_total} for each in results.results]
    links = {"previous": page - 1 if page > 1 else None, "next": page + 1 if results.more else None}
    shaped |= {
        name: number and urlencode({**shaped["chosen"], "q": text, "page": number}) for name, number in links.items()
    }
    return shaped | {"text": text, "number": page, "results": rows}


def dashboard(found: Dashboard, now: int, zone: str) -> JSON:
    """Return the figures of a track, album or artist, with links to related pages, such as those of its tracks.

    `zone`: the time zone of the hours of the week, which stays chosen on related pages.
    """
    shaped = report(found, now) | {"related": list(map(named, found.related)), "formats": formats()}
    kept = {} if zone == IN_UTC else {"zone": zone}
    chosen = shaped["chosen"] | kept
    shaped |= {"zone": zone, "zones": zones(), "kept": kept, "chosen": chosen, "query": urlencode(chosen)}
    return shaped | {
        "realtime": found.realtime and insights.realtime(found.subject.id, found.realtime, now),
        "image": found.image,
        "containing": found.containing,
        "own_plays": found.own_plays,
        "milestones": found.milestones and listening.milestones(found.milestones),
        "releases": found.releases and listening.releases_until(now, found.releases, DEFAULT_DAYS),
        "collaborations": found.collaborations and insights.collaborations(found.collaborations, []),
    }


def report(found: Dashboard, now: int) -> JSON:
    """Return the figures of a track, album or artist for a shared report, which has no links to other pages."""
    before, data = found.figures.window.before, _data(found)
    return period(found.figures.window, now) | {
        **named(found),
        "data": data,
        "before": before.label,
        "first_plays": insights.first_plays(found.figures.window, found.figures.first_play),
        "before_start": to_date(before.first).isoformat(),
        "cards": insights.cards(figures.FIGURES, data),
        "listening": insights.cards(LISTENING, insights.nested(LISTENING, found.listening)),
        "hours": found.hours.hours.plays,
        "hours_minute": found.hours.minute,
        "hours_mixed": found.hours.mixed,
        "interval": found.interval,
        "intervals": INTERVALS,
        "days": _days(found, day_of(now)),
    }


def sharing(shared: SharedReport, site: Site) -> JSON:
    """Return who shares a report and until when, and the first day of its link if that is too long ago to be shown.

    `picture`: the URL of a picture, which chats show beside the link.
    """
    earlier = None if shared.earlier_first is None else to_date(shared.earlier_first).isoformat()
    subject = shared.subjects[0]
    picture = f"{site.root}/avatars/{figures.noun(subject)}/{subject.id}"
    told = {"expires_at": shared.expires_at, "owner": shared.owner, "earlier": earlier, "picture": picture}
    return told | {"moving": shared.moving and MOVING[shared.moving]}


def _data(found: Dashboard) -> JSON:
    if found.counts is not None:
        return insights.artist(found.figures, found.counts, list(found.tracks), list(found.albums))
    return insights.album(found.figures, list(found.tracks))


def _days(found: Dashboard, today: int) -> list[JSON]:
    """Return plays and listeners by day, week or month, with the plays of the same days of the earlier window."""
    window = found.figures.window
    rows = [
        {
            "date": to_date(point.days.start).isoformat(),
            "name": _name(point.days, found.interval),
            "plays": point.plays,
            "listeners": point.listeners,
            "before": _plays_before(found.before, point.days.start - window.first, len(point.days)),
            "open": today in point.days,
        }
        for point in found.curve
    ]
    return rows[_first_shown([bool(row["plays"] or row["before"]) for row in rows]) :]


def _plays_before(before: Sequence[int], first: int, days: int) -> int | None:
    some = before[first : first + days]
    return sum(some) if some else None


def _name(days: range, interval: Interval) -> str:
    """Return the days of a point as text."""
    first, last = to_date(days.start), to_date(days.stop - 1)
    return (interval == "month" and dates.calendar_name(first, last)) or dates.span(first, last)


def _first_shown(played: Sequence[bool]) -> int:
    """Return the place of the first day to show, given for each day whether it has plays.

    A period of more than a year begins with the first day that has plays, so that the page stays small.
    """
    first = next((place for place, has_plays in enumerate(played) if has_plays), len(played))
    return max(0, min(first, len(played) - A_YEAR))


def named(found: Dashboard | Titled | Result | ComparedSubject) -> JSON:
    """Return the kind, id, name and artists of a track, album or artist."""
    kind = figures.noun(found.subject)
    return {"kind": kind, "id": found.subject.id, "name": found.name, "artists": ", ".join(found.artists)}


def formats() -> list[JSON]:
    """Return the formats of downloads."""
    return [{"id": each.id, "name": each.name} for each in FORMATS.values() if each.reports]


def comparison(kind: str, found: Sequence[ComparedSubject], window: Window, now: int) -> JSON:
    """Return the figures of the subjects beside each other, and those of each day."""
    return period(window, now) | {
        "kind": kind,
        "before": window.before.label,
        "rows": [_compared(each) for each in found],
        "days": _compared_days(found, window, day_of(now)),
    }


def choice(page: JSON, text: str, results: Sequence[Result]) -> JSON:
    """Return the variables of a page on which subjects are added and removed. `results`: those found for `text`."""
    ids = [row["id"] for row in page["rows"]]
    kept = {"kind": page["kind"], "ids": ",".join(map(str, ids))} if ids else {"kind": page["kind"]}
    return page | {
        "most": MOST,
        "text": text,
        "kept": kept,
        "own_query": urlencode(kept | page["chosen"]),
        "without": {each: _query(page, [other for other in ids if other != each]) for each in ids},
        "results": [
            named(each) | {"plays": each.plays, "query": _query(page, [*ids, each.subject.id])}
            for each in results
            if each.subject.id not in ids
        ],
    }


def _query(page: JSON, ids: Sequence[int]) -> str:
    return urlencode({"kind": page["kind"], "ids": ",".join(map(str, ids)), **page["chosen"]})


def _compared(each: ComparedSubject) -> JSON:
    return named(each) | {
        "data": insights.figures(each.figures),
        "first_plays": insights.first_plays(each.figures.window, each.figures.first_play),
    }


def _compared_days(found: Sequence[ComparedSubject], window: Window, today: int) -> list[JSON]:
    """Return the plays and listeners of all subjects by day."""
    days = list(zip(window.numbers, zip(*(each.days for each in found), strict=True), strict=True)) if found else []
    first = _first_shown([any(plays for plays, _ in of) for _, of in days])
    return [{"date": to_date(day).isoformat(), "open": day == today, "counts": counts} for day, counts in days[first:]]
