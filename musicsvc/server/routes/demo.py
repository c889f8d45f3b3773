"""Endpoints that exist in demo mode only. They need no token, and have no rate limit."""

from functools import partial

from musicsvc.server.handlers.demo import faults
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.schemas.answers import Success, one
from musicsvc.server.schemas.demo import FaultIn, FaultRule, FaultRules

Demo = partial(Route, access=Access.OPEN, family=Family.PLAIN, no_store=True, demo=True)


# fmt: off
ROUTES: tuple[Route, ...] = (
    Demo("GET", "/demo/faults", faults.index, answer=FaultRules),
    Demo("POST", "/demo/faults", faults.create, status=201, body=FaultIn, answer=one("fault", FaultRule),
         raises=(409,)),
    Demo("DELETE", "/demo/faults", faults.clear, answer=Success),
    Demo("DELETE", "/demo/faults/{id}", faults.delete, answer=Success, example={"id": "1"}),
)
# fmt: on
