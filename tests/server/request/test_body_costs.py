"""The CPU time of the worst bodies: none keeps the event loop from answering others."""

import gc
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.request.bodies import SMALL
from musicsvc.server.routes.route import TOOLS, Route
from musicsvc.server.schemas.fields import Body
from musicsvc.store.engine.store import Store
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support import worst_bodies
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest
from tests.support.raw_connection import request
from tests.support.threaded_server import LOOP_SECONDS, TRIES, Connection, Cost, threaded_server

pytestmark = [pytest.mark.only_on("sqlite"), pytest.mark.slow]


SERVER_SECONDS = 0.15  # of all threads: the event loop waits for the interpreter while another thread has it
LARGEST_ANSWER = 128 * 1024
STRIDE = 6  # without --long each route gets every sixth body, another selection than the route before


@pytest.fixture(autouse=True)
def few_objects() -> Iterator[None]:
    """Keep the objects of other tests out of the garbage collector's sight, as the server does with its own."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("size", [SMALL, Body.most_bytes], ids=["small", "large"])
def test_no_body_costs_more_than_it_may(store: Store, clock: MovableClock, long: bool, size: int) -> None:
    world = World(store, clock, ())
    routes = [route for route in TESTED_ROUTES if route.body is not None]
    with threaded_server(store, clock) as server, closing(Connection(server.port, server.thread)) as connection:
        for number, route in enumerate(routes):
            valid = ValidRequest(world, route)
            for kind, make in selected(route, size, number, all_of_them=long):
                raw = post(valid, world.tokens[OWNER], make())
                cost = cheapest(connection, raw)
                place = f"{kind} to {endpoint(route)}: {cost}"
                assert cost.status in {400, 422}, place
                assert cost.size <= LARGEST_ANSWER, place
                assert cost.loop <= LOOP_SECONDS, place
                assert cost.server <= SERVER_SECONDS, place


def test_no_argument_of_a_tool_costs_more_than_it_may(store: Store, clock: MovableClock) -> None:
    arguments = {"kind": "track", "ids": list(range(1, 19_000))}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "compare", "arguments": arguments}}
    headers = (f"Authorization: Bearer {World(store, clock, ()).tokens[OWNER]}", "Content-Type: application/json")
    raw = request("POST", TOOLS, *headers, body=json.dumps(call).encode())
    with threaded_server(store, clock) as server, closing(Connection(server.port, server.thread)) as connection:
        cost = cheapest(connection, raw)
    assert cost.status == 200, cost
    assert cost.size <= LARGEST_ANSWER, cost
    assert cost.loop <= LOOP_SECONDS, cost


def selected(route: Route, size: int, number: int, *, all_of_them: bool) -> list[Any]:
    assert route.body is not None
    found = worst_bodies.bodies(route.body, size)
    return found if all_of_them else found[number % STRIDE :: STRIDE]


def cheapest(connection: Connection, raw: bytes) -> Cost:
    """Return the cost of the first try that is within the bounds, else that of the last."""
    for _ in range(TRIES):
        cost = connection.cost(raw)
        if cost.loop <= LOOP_SECONDS and cost.server <= SERVER_SECONDS:
            break
    return cost


def post(valid: ValidRequest, token: str | None, body: bytes) -> bytes:
    headers = (f"Authorization: Bearer {token}", "Content-Type: application/json")
    return request(valid.method, valid.path, *headers, body=body)
