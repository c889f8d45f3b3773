"""Ids in paths, pages, and fields, on every endpoint that takes them (docs/api.md, Requests)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.schemas.fields import Pages
from musicsvc.store.engine.store import Store
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest, is_error, takes_id
from tests.support.raw_connection import connected, request
from tests.support.serving import Client

NO_IDS = [
    *(
        "0",
        "00",
        "01",
        "-1",
        "+1",
        "%2B1",
        "1.0",
        "1e0",
        "0x1",
        "1_0",
        "%201",
        "1%20",
        "1%00",
        "1%0A",
        "%31",
        "1;x",
        "1,2",
    ),
    *("%D9%A3", "%EF%BC%91", "%C2%B2", "null", "me", "*", "..", str(2**53), str(2**63), str(2**64 + 1), "9" * 5000),
]
NO_NUMBERS = ["", "0", "-1", "%2B1", "+1", "01", "1.0", "1e1", "0x1", "1_0", "%201", "%D9%A1", "x", "null", "9" * 5000]


def valid_requests(world: World, holds: Callable[[Route], object]) -> Iterator[tuple[Route, ValidRequest]]:
    """Return a valid request to each endpoint that matches."""
    chosen = [route for route in TESTED_ROUTES if holds(route)]
    assert chosen
    for route in chosen:
        yield route, ValidRequest(world, route)


@pytest.mark.slow
async def test_what_is_no_id_names_nothing(anonymous: Client, store: Store, clock: MovableClock) -> None:
    world = World(store, clock, ())
    headers = [f"Authorization: Bearer {world.tokens[OWNER]}", "Content-Type: application/json"]
    async with connected(anonymous.root) as wire:
        for route, valid in valid_requests(world, takes_id):
            body = b"" if valid.body is None else json.dumps(valid.body).encode()
            for text in NO_IDS:
                fitting = text[: 8_000 // route.path.count("{")]  # a longer line is no valid HTTP
                await wire.send(request(route.method, valid.about(fitting), *headers, body=body))
                answer = await wire.answer()
                assert answer.status == 404, (endpoint(route), text)
                assert is_error(answer, route, "not_found")


@pytest.mark.slow
async def test_pages_are_numbers_within_bounds_given_once(anonymous: Client, store: Store, clock: MovableClock) -> None:
    world = World(store, clock, ())
    for route, valid in valid_requests(world, lambda route: route.query is not None and issubclass(route.query, Pages)):
        holder = anonymous.holding(None if route.access is Access.PUBLIC else world.tokens[OWNER])
        await _check_bounds(holder, valid.path)


async def _check_bounds(client: Client, path: str) -> None:
    faults = {f"page={text}": {"page"} for text in [*NO_NUMBERS, str(2**31)]}
    for name in ("perPage", "per_page"):
        faults |= {f"{name}={text}": {name} for text in [*NO_NUMBERS, "101"]}
        faults |= {f"{name}=2&{name}=2": {name}, f"{name}=0&page=0": {name, "page"}}
    faults |= {"page=1&page=1": {"page"}, "page=1&page=x": {"page"}}
    faults |= {"perPage=2&per_page=2": {"per_page"}, "per_page=2&perPage=x": {"perPage"}}
    for query, names in faults.items():
        answer = await client.get(f"{path}?{query}")
        assert (answer.status, set(answer.json["errors"])) == (422, names), (path, query)


async def test_every_faulty_field_of_a_body_is_told_at_once(
    anonymous: Client, store: Store, clock: MovableClock
) -> None:
    world = World(store, clock, ())
    for route, valid in valid_requests(world, lambda route: route.body is not None):
        await _check_fields(anonymous.holding(world.tokens[OWNER]), route, valid)


async def _check_fields(client: Client, route: Route, valid: ValidRequest) -> None:
    assert route.body is not None
    fields = {field.alias or name: field for name, field in route.body.model_fields.items()}
    answer = await client(route.method, valid.path, {name: {"wrong": True} for name in fields})
    assert answer.status == 422
    assert set(answer.json["errors"]) == set(fields)
    assert all(isinstance(message, str) and message for message in answer.json["errors"].values())
    required = {name for name, field in fields.items() if field.is_required()}
    if required and route.family is not Family.INSIGHTS:
        for body in ({"nonsense": 1}, dict.fromkeys(required)):
            answer = await client(route.method, valid.path, body)
            assert answer.status == 422
            assert answer.json["errors"] == dict.fromkeys(required, "This field is required.")


async def test_references_that_do_not_exist_are_told_with_the_other_faults(
    anonymous: Client, store: Store, clock: MovableClock
) -> None:
    world = World(store, clock, ())
    for route, valid in valid_requests(world, lambda route: route.body is not None and route.body.references):
        await _check_references(anonymous.holding(world.tokens[OWNER]), route, valid)


async def _check_references(client: Client, route: Route, valid: ValidRequest) -> None:
    assert route.body is not None
    for name in route.body.references:
        listed = isinstance(valid.body.get(name), list)
        value: Any = [*valid.body[name], 2**53 - 1] if listed else 2**53 - 1
        place = f"{name}.{len(value) - 1}" if listed else name
        answer = await client(route.method, valid.path, valid.body | {name: value})
        assert (answer.status, list(answer.json["errors"])) == (422, [place])
        faulty: dict[str, Any] = {other: {"wrong": True} for other in route.body.model_fields} | {name: value}
        answer = await client(route.method, valid.path, faulty)
        assert answer.status == 422
        assert set(answer.json["errors"]) == {*route.body.model_fields} - {name} | {place}
