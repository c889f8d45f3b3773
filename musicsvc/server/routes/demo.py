"""Endpoints that exist in demo mode only. They need no token, and have no rate limit."""

from functools import partial

from musicsvc.server.handlers.demo import clock, faults, requests, score, snapshots
from musicsvc.server.routes.route import NO_STORE, Access, Cost, Docs, Family, Route, Runs
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.answers import Success, one
from musicsvc.server.schemas.demo import (
    DemoCard,
    DemoClock,
    DemoSnapshot,
    DemoSnapshots,
    FaultRule,
    FaultRules,
    RecordedRequests,
)

Demo = partial(Route, access=Access.OPEN, family=Family.PLAIN, cost=NO_STORE)
Change = partial(Demo, cost=Cost(Runs.IN_TURN))
CLOCK = one("clock", DemoClock)
SNAPSHOTS = "/demo/snapshots"
SNAPSHOT = f"{SNAPSHOTS}/{{name}}"
NAMED = {"name": "before-sync"}


# fmt: off
DEMO_ROUTES: tuple[Route, ...] = (  # of `serve --demo`
    *ROUTES,
    Demo("GET", "/demo/faults", faults.index, answer=FaultRules),
    Change("POST", "/demo/faults", faults.create, status=201, answer=one("fault", FaultRule), docs=Docs(raises=(409,))),
    Change("DELETE", "/demo/faults", faults.clear, answer=Success),
    Change("DELETE", "/demo/faults/{id}", faults.delete, answer=Success, docs=Docs(example={"id": "1"})),
    Demo("GET", "/demo/clock", clock.show, answer=CLOCK),
    Change("POST", "/demo/clock", clock.move, answer=CLOCK),
    Change("POST", "/demo/reset", clock.reset, answer=CLOCK),
    Demo("GET", "/demo/requests", requests.index, answer=RecordedRequests),
    Change("DELETE", "/demo/requests", requests.clear, answer=Success),
    Demo("GET", "/demo/score", score.show, answer=one("card", DemoCard), docs=Docs(raises=(404,))),
    Demo("GET", SNAPSHOTS, snapshots.index, answer=DemoSnapshots),
    Change("POST", SNAPSHOT, snapshots.create, status=201, answer=one("snapshot", DemoSnapshot),
           docs=Docs(raises=(409, 422), example=NAMED)),
    Change("POST", f"{SNAPSHOT}/restore", snapshots.restore, answer=one("snapshot", DemoSnapshot),
           docs=Docs(example=NAMED)),
    Change("DELETE", SNAPSHOT, snapshots.delete, answer=Success, docs=Docs(example=NAMED)),
)
# fmt: on
