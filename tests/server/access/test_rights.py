"""The rights matrix: every endpoint of the table with every kind of caller."""

from typing import Any

import pytest

from musicsvc.server.routes.route import Family, Route
from musicsvc.server.routes.table import ROUTES
from tests.rights.table import BODIES, RIGHTS, Right, endpoint, expected, key, path_of
from tests.rights.world import WHO, World
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

# tests/rights/pages.py is about pages; what players use takes other tokens (tests/server/handlers/test_listens.py).
API = [route for route in ROUTES if route.family not in {Family.PAGE, Family.LISTENS, Family.TOOLS}]
CELLS = [(route, case, right) for route in API for case, right in RIGHTS.get(key(route), {}).items()]


@pytest.fixture(scope="module")
def world(shared: Shared) -> World:
    """Callers of all tests, none of which changes an account or its token; each request has a subject of its own."""
    return shared.world()


@pytest.mark.parametrize(
    ("route", "right"),
    [pytest.param(route, right, id=f"{endpoint(route)} {case}".strip()) for route, case, right in CELLS],
)
@on_shared_loop
async def test_each_kind_of_caller_is_answered_as_the_matrix_says(
    shared: Shared, world: World, route: Route, right: Right
) -> None:
    told = {who: await ask(shared.client, world, who, route, right) for who in WHO}

    assert told == expected(route, right)


async def ask(client: Client, world: World, who: str, route: Route, right: Right) -> int:
    """Return the status for this caller, on a subject that no other test has changed."""
    subject = world.do(lambda: right.make(world, who))
    body: Any = None
    if route.body is not None:
        body = (right.body or BODIES[endpoint(route)])(world, who, subject)
    path = path_of(route, subject) + right.query.format(subject)
    return (await client.holding(world.tokens[who])(route.method, path, body)).status


def test_the_matrix_is_complete() -> None:
    without = [endpoint(route) for route in API if key(route) not in RIGHTS]
    bodiless = [endpoint(route) for route in API if route.body is not None and endpoint(route) not in BODIES]

    assert without == [], "say in tests/rights/table.py who may use these"
    assert bodiless == [], "say in tests/rights/table.py what is sent to these"


def test_the_matrix_holds_no_removed_endpoint() -> None:
    assert RIGHTS.keys() - {key(route) for route in ROUTES} == set()
    assert BODIES.keys() - {endpoint(route) for route in ROUTES} == set()
