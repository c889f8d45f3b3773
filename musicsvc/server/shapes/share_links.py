"""Build and read the addresses of shared reports, which contain the signed id of a link."""

from musicsvc.errors import NotFound
from musicsvc.reports.charts import dates
from musicsvc.server.shapes import signed_urls
from musicsvc.server.shapes.envelope import JSON, Site
from musicsvc.store import security
from musicsvc.store.dashboards import report_links
from musicsvc.store.dashboards.report_links import LinkRow
from musicsvc.store.insights import figures
from musicsvc.store.plays.periods import to_date

PURPOSE = "report link"


def address(link_id: int, created_at: int, site: Site) -> str:
    """Return the URL of a shared report."""
    return f"{site.root}/reports/{signed_urls.sign(security.key(PURPOSE), [link_id, created_at])}"


def parse(text: str) -> tuple[int, int]:
    """Return the link's id and time of creation from the last part of its URL. Raises NotFound if it is invalid."""
    try:
        link_id, created_at = signed_urls.verify(security.key(PURPOSE), text)
    except ValueError:
        raise NotFound(report_links.GONE) from None
    return link_id, created_at


def link(row: LinkRow, site: Site) -> JSON:
    """Return a share link as its owner sees it, with its URL."""
    kind = figures.noun(row.subjects[0])
    first, last = to_date(row.window.first), to_date(row.window.end - 1)
    lost = f"{'a' if kind == 'track' else 'an'} {kind} you no longer manage"  # also one that was deleted
    names = [lost if name is None else name for name in row.names]
    return {
        "id": row.id,
        "url": address(row.id, row.created_at, site),
        "kind": kind,
        "ids": [each.id for each in row.subjects],
        "names": names,
        "title": ", ".join(names),
        "works": any(row.names),
        "shown": report_links.MOVING[row.moving] if row.moving else dates.words(first, last),
        "programs": row.programs,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
