"""Any endpoint of the table, asked soundly or otherwise."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

from musicsvc.server.routes.route import Family
from musicsvc.server.routes.table import ROUTES
from tests.rights.table import BODIES, RIGHTS, endpoint, key
from tests.rights.world import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.server.routes.route import Route
    from tests.rights.table import Right
    from tests.rights.world import World
    from tests.support.serving import Answer

ASKED = [route for route in ROUTES if key(route) in RIGHTS]  # test_rights.py tells what is missing
UNAUTHENTICATED = {"message": "Unauthenticated."}


def each(holds: Callable[[Route], object] = bool) -> pytest.MarkDecorator:
    """Runs the test for each endpoint of which this holds."""
    routes = [route for route in ASKED if holds(route)]
    return pytest.mark.parametrize("route", routes, ids=endpoint)


def takes_id(route: Route) -> bool:
    """Whether the path names its subject by an id."""
    if route.find is None:
        return False
    first = next(iter(inspect.signature(route.find).parameters.values()))
    return first.annotation in {int, "int"}


class Question:
    """A sound request of the owner's to an endpoint."""

    def __init__(self, world: World, route: Route, right: Right | None = None, who: str = OWNER) -> None:
        right = right or next(iter(RIGHTS[key(route)].values()))
        self.route = route
        self.status = right.owner or route.status
        self.method = route.method
        self.subject = world.do(lambda: right.make(world, who))
        self.path = self.about(self.subject)
        self.query = right.query
        self.body: Any = None
        if route.body is not None:
            self.body = (right.body or BODIES[endpoint(route)])(world, who, self.subject)

    def about(self, subject: object) -> str:
        """The path that names this."""
        return re.sub(r"\{\w+\}", str(subject), self.route.path)


def is_error(answer: Answer, route: Route, code: str) -> bool:
    """Whether it is the error body of the endpoint's family; `code` stands in that of the insights."""
    body = answer.json
    if route.family is Family.INSIGHTS:
        keys = ["success", "message", "error", *(["errors"] if answer.status == 422 else [])]
        return list(body) == keys and body["success"] is False and body["error"] == code
    return list(body) == ["status", "message", "errors"] and body["status"] == "error"
