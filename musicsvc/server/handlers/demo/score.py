"""The report card of the demo: what clients did wrong (in demo mode only)."""

from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.demo.scoring.point import Result, Violation
from musicsvc.server.demo.state import DemoState
from musicsvc.server.shapes.envelope import JSON, Site, ok, picked

NO_CARD = "The demo keeps no report card. Start it with --score."


def show(demo: DemoState, site: Site, settings: Settings) -> JSON:
    """Get the report card: the points that clients have passed and failed until now.

    Raises NotFound without --score.
    """
    if demo.card is None:
        raise NotFound(NO_CARD)
    report, origin = demo.card.report(), site.root.removesuffix(settings.server.base_path)
    points = [_point(result, origin) for result in report.results]
    return ok(card={"score": report.score, "requests": report.requests, "points": points})


def _point(result: Result, origin: str) -> JSON:
    return {
        **picked(result.point, "name", "title"),
        "state": result.state.value,
        "violations": result.number,
        "first": [_violation(violation, origin) for violation in result.violations],
        **picked(result.point, "remedy", "occasion"),
    }


def _violation(violation: Violation, origin: str) -> JSON:
    shown = "number", "method", "target", "status"
    requests = [picked(entry, *shown) | {"curl": entry.curl(origin)} for entry in violation.requests]
    return {"text": violation.text, "client": violation.client, "requests": requests}
