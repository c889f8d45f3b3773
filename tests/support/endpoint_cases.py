"""Valid requests to each endpoint of the table, and checks of their errors."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from musicsvc.server.routes.route import Family, Route
from musicsvc.server.routes.table import ROUTES
from tests.rights.table import BODIES, RIGHTS, Right, endpoint, key, path_of
from tests.rights.world import OWNER, World
from tests.support.serving import Answer

# test_rights.py names missing ones.
TESTED_ROUTES = [route for route in ROUTES if key(route) in RIGHTS and route.family is not Family.PAGE]
UNAUTHENTICATED = {"message": "Unauthenticated."}


def each(holds: Callable[[Route], object] = bool) -> pytest.MarkDecorator:
    """Run the test for each endpoint that matches."""
    routes = [route for route in TESTED_ROUTES if holds(route)]
    return pytest.mark.parametrize("route", routes, ids=endpoint)


def takes_id(route: Route) -> bool:
    """Return whether the path names its subject by an id."""
    if route.find is None:
        return False
    first = next(iter(inspect.signature(route.find).parameters.values()))
    return first.annotation in {int, "int"}


class ValidRequest:
    """A valid request to an endpoint by the owner of its subject."""

    def __init__(self, world: World, route: Route, right: Right | None = None, who: str = OWNER) -> None:
        right = right or next(iter(RIGHTS[key(route)].values()))
        self.route = route
        self.status = right.owner or route.status
        self.method = route.method
        self.subject = world.do(lambda: right.make(world, who))
        self.path = self.about(self.subject)
        self.query = right.query.format(self.subject)
        self.body: Any = None
        if route.body is not None:
            self.body = (right.body or BODIES[endpoint(route)])(world, who, self.subject)

    def about(self, subject: object) -> str:
        """Return the path of this subject."""
        return path_of(self.route, subject)


def is_error(answer: Answer, route: Route, code: str) -> bool:
    """Return whether the answer has the error body of the endpoint's family; `code` is part of that of the insights."""
    body = answer.json
    if route.family is Family.INSIGHTS:
        keys = ["success", "message", "error", *(["errors"] if answer.status == 422 else [])]
        return list(body) == keys and body["success"] is False and body["error"] == code
    return list(body) == ["status", "message", "errors"] and body["status"] == "error"
