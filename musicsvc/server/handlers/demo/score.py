"""The report card of the demo: what clients did wrong (in demo mode only)."""

from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.demo.scoring.point import Verdict, Violation
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
    points = [_point(verdict, origin) for verdict in report.verdicts]
    return ok(card={"score": report.score, "requests": report.requests, "points": points})


def _point(verdict: Verdict, origin: str) -> JSON:
    return {
        **picked(verdict.point, "name", "title"),
        "state": verdict.state.value,
        "violations": verdict.number,
        "first": [_violation(violation, origin) for violation in verdict.violations],
        **picked(verdict.point, "remedy", "occasion"),
    }


def _violation(violation: Violation, origin: str) -> JSON:
    shown = "number", "method", "target", "status"
    requests = [picked(entry, *shown) | {"curl": entry.curl(origin)} for entry in violation.requests]
    return {"text": violation.text, "client": violation.client, "requests": requests}
