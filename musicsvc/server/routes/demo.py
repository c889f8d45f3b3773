"""Endpoints that exist in demo mode only. They need no token, and have no rate limit."""

from functools import partial

from musicsvc.server.handlers.demo import clock, faults, requests, score, snapshots
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.answers import Success, one
from musicsvc.server.schemas.demo import (
    ClockIn,
    DemoCard,
    DemoClock,
    DemoSnapshot,
    DemoSnapshots,
    FaultIn,
    FaultRule,
    FaultRules,
    RecordedRequests,
    RequestsQuery,
)

Demo = partial(Route, access=Access.OPEN, family=Family.PLAIN, no_store=True, demo=True)
CLOCK = one("clock", DemoClock)
SNAPSHOTS = "/demo/snapshots"
SNAPSHOT = f"{SNAPSHOTS}/{{name}}"
NAMED = {"name": "before-sync"}


# fmt: off
DEMO_ROUTES: tuple[Route, ...] = (  # of `serve --demo`
    *ROUTES,
    Demo("GET", "/demo/faults", faults.index, answer=FaultRules),
    Demo("POST", "/demo/faults", faults.create, status=201, body=FaultIn, answer=one("fault", FaultRule),
         raises=(409,)),
    Demo("DELETE", "/demo/faults", faults.clear, answer=Success),
    Demo("DELETE", "/demo/faults/{id}", faults.delete, answer=Success, example={"id": "1"}),
    Demo("GET", "/demo/clock", clock.show, answer=CLOCK),
    Demo("POST", "/demo/clock", clock.move, body=ClockIn, answer=CLOCK),
    Demo("POST", "/demo/reset", clock.reset, answer=CLOCK),
    Demo("GET", "/demo/requests", requests.index, query=RequestsQuery, answer=RecordedRequests),
    Demo("DELETE", "/demo/requests", requests.clear, answer=Success),
    Demo("GET", "/demo/score", score.show, answer=one("card", DemoCard), raises=(404,)),
    Demo("GET", SNAPSHOTS, snapshots.index, answer=DemoSnapshots),
    Demo("POST", SNAPSHOT, snapshots.create, status=201, answer=one("snapshot", DemoSnapshot), raises=(409, 422),
         example=NAMED),
    Demo("POST", f"{SNAPSHOT}/restore", snapshots.restore, answer=one("snapshot", DemoSnapshot), example=NAMED),
    Demo("DELETE", SNAPSHOT, snapshots.delete, answer=Success, example=NAMED),
)
# fmt: on
