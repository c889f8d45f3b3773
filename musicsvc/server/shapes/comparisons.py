"""Build the template variables of pages that compare several tracks, albums or artists."""

from collections.abc import Sequence
from urllib.parse import urlencode

from musicsvc.reports.charts import dates
from musicsvc.server.shapes import dashboards, insights
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.dashboards.catalog_search import Result
from musicsvc.store.dashboards.comparisons import MOST, ComparedSubject
from musicsvc.store.plays.periods import Window, day_of, to_date


def comparison(kind: str, found: Sequence[ComparedSubject], window: Window, now: int) -> JSON:
    """Return the figures of the subjects beside each other, and those of each day."""
    return dashboards.period(window, now) | {
        "kind": kind,
        "before": window.before.label,
        "rows": [_row(each) for each in found],
        "days": _days(found, window, day_of(now)),
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
            {
                "id": each.subject.id,
                "name": each.name,
                "artists": ", ".join(each.artists),
                "plays": each.plays,
                "query": _query(page, [*ids, each.subject.id]),
            }
            for each in results
            if each.subject.id not in ids
        ],
    }


def _query(page: JSON, ids: Sequence[int]) -> str:
    return urlencode({"kind": page["kind"], "ids": ",".join(map(str, ids)), **page["chosen"]})


def _row(each: ComparedSubject) -> JSON:
    first = each.first_plays
    return {
        "id": each.subject.id,
        "name": each.name,
        "artists": ", ".join(each.artists),
        "data": insights.figures(each.figures),
        "first_plays": None if first is None else dates.first_plays(to_date(first)),
    }


def _days(found: Sequence[ComparedSubject], window: Window, today: int) -> list[JSON]:
    """Return the plays and listeners of all subjects by day."""
    days = list(zip(window.numbers, zip(*(each.days for each in found), strict=True), strict=True)) if found else []
    first = dashboards.first_shown([any(plays for plays, _ in of) for _, of in days])
    return [{"date": to_date(day).isoformat(), "open": day == today, "counts": counts} for day, counts in days[first:]]
