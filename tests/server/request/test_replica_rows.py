"""The rows of the table of endpoints that a read replica may answer."""

from dataclasses import replace

from musicsvc.server.routes.route import INSIGHTS, Cost, Family, Route, Runs
from musicsvc.server.routes.table import ROUTES

ROWS = [route for route in ROUTES if route.cost.replica]
# The page of a track shows its plays of this moment, and shared reports are kept for 5 seconds already. Duplicates and
# what an import has added are shown to be changed.
PRIMARY = {
    f"{INSIGHTS}/tracks/{{trackId}}/realtime",
    "/insights/track/{id}/realtime",
    "/insights/track/{id}",
    "/reports/{link}",
    "/insights/duplicates",
    "/imports/{id}/undo",
    "/settings/listens",  # shows what was dismissed or named a moment ago
}


def of_figures(route: Route) -> bool:
    """Return whether the responses consist of figures: those of the insights endpoints and pages, and exports."""
    if route.family is Family.PAGE:
        return route.cost.runs is Runs.FIGURES or (route.cost.runs is Runs.SLOW and route.path.startswith("/insights/"))
    return route.family is Family.INSIGHTS and not (route.cost.runs is Runs.CONSTANT or route.writes)


def test_figures_and_exports_may_lag_except_those_of_this_moment() -> None:
    assert len(ROWS) > 30
    assert {route.path for route in ROWS} == {route.path for route in ROUTES if of_figures(route)} - PRIMARY
    assert {route.path for route in ROUTES} > PRIMARY


def test_what_may_lag_only_reads_and_is_never_cached() -> None:
    assert not any(
        route.writes or route.cacheable or route.cost.prepare or route.cost.runs is Runs.NO_STORE for route in ROWS
    )
    cached = next(route for route in ROUTES if route.cacheable)
    assert not replace(cached, cost=Cost(replica=True)).cacheable
