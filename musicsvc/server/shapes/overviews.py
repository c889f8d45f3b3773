"""Build the template variables of the overview of an account, and of its tables of artists, albums and tracks."""

from collections.abc import Callable
from urllib.parse import urlencode

from musicsvc.reports.charts import dates
from musicsvc.server.shapes import dashboards, insights
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.dashboards.overviews import AccountOverview
from musicsvc.store.dashboards.tables import ARTISTS, NAME, PER_PAGE, Selection, TablePage
from musicsvc.store.insights.export_rows import ExportRow
from musicsvc.store.insights.figures import FIGURES
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.subjects import ARTIST, NOUNS
from musicsvc.wording import quantity

TITLES = {each.name: each.title for each in FIGURES} | {"plays_change": "Growth", "listeners_change": "Growth"}
SHOWN = ("plays_period", "plays_change", "listeners_period", "listeners_change", "likes", "reposts", "plays_total")


def overview(found: AccountOverview, page: TablePage, selection: Selection, now: int) -> JSON:
    """Return the figures of everything that an account manages, what has changed, and the first rows of a table."""
    shaped = dashboards.report(found.dashboard, now)
    return shaped | {
        "movers": {"up": found.up, "down": found.down},
        "month": f"{dates.MONTHS[found.month.month - 1]} {found.month.year}",
        "released": found.released,
        "releases": found.releases,
        "milestones": found.milestones,
        "more_milestones": found.more_milestones,
        "newest": found.newest,
        "table": _table(page, selection, 1, shaped["chosen"]),
        "formats": dashboards.formats(),
    }


def table(page: TablePage, selection: Selection, number: int, window: Window, now: int) -> JSON:
    """Return a page of a table, with links that sort it and lead to its other pages."""
    shaped = dashboards.period(window, now)
    kept = {name: value for name, value in _chosen(selection).items() if value}
    return shaped | {"kept": kept, "table": _table(page, selection, number, shaped["chosen"])}


def _chosen(selection: Selection) -> dict[str, str]:
    return {"q": selection.text, "sort": f"{'-' if selection.descending else ''}{selection.sort}"}


def _table(page: TablePage, selection: Selection, number: int, period: JSON) -> JSON:
    noun, pages = NOUNS[selection.kind], max(1, -(-page.total // PER_PAGE))

    found = {"q": selection.text} if selection.text else {}

    def query(sorting: Selection = selection, **more: object) -> str:
        return urlencode(period | {name: value for name, value in (_chosen(sorting) | more).items() if value})

    by = () if selection.kind == ARTIST else (ARTISTS,)
    return {
        "noun": noun,
        "kinds": {f"{each}s": urlencode(period | found) for each in ("artist", "album", "track")},
        "text": selection.text,
        "sort": _chosen(selection)["sort"],
        "columns": [_column(each, selection, query) for each in (NAME, *by, *SHOWN)],
        "rows": list(map(_row, page.rows)),
        "total": quantity(page.total, noun),
        "number": number,
        "pages": pages,
        "query": query(),
        "previous": query(page=min(number - 1, pages)) if number > 1 else None,
        "next": query(page=number + 1) if number < pages else None,
    }


def _column(name: str, selection: Selection, query: Callable[[Selection], str]) -> JSON:
    """Return a column with the query that sorts by it; figures begin with the highest, names with A."""
    is_sorted = selection.sort == name
    falls = not selection.descending if is_sorted else name not in {NAME, ARTISTS}
    order = "descending" if selection.descending else "ascending"
    return {
        "name": name,
        "title": {NAME: NOUNS[selection.kind].capitalize(), ARTISTS: "Artists"}.get(name) or TITLES[name],
        "order": order if is_sorted else None,
        "query": query(selection._replace(sort=name, descending=falls)),
    }


def _row(row: ExportRow) -> JSON:
    return {
        "id": row.id,
        "name": row.named.name,
        "artists": ", ".join(row.artists),
        "figures": {each.name: getattr(row.figures, each.key) for each in FIGURES},
        "first_plays": insights.first_plays(row.figures.window, row.figures.first_play),
    }
