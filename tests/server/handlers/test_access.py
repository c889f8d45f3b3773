"""Requests for API access over the API, and the decisions on them."""

import asyncio
from typing import Any

import pytest

from musicsvc.clock import DAY, HOUR, MovableClock, isoformat
from musicsvc.config import Access, Limits, Settings
from musicsvc.server.schemas.pages.accounts import AccessForm
from musicsvc.store.accounts import api_access, users
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from tests.rights.world import OWNER, READER, World
from tests.support.serving import Answer, Client, running

WITHOUT = "without access"
BODY = {"use_case": "A page of our figures", "organization": "Example Records", "volume": "5,000 a day"}
ASK, MINE = "access-requests", "access-requests/me"


@pytest.fixture
def world(store: Store, clock: MovableClock) -> World:
    return World(store, clock, [WITHOUT, OWNER, READER])


async def ask(client: Client, **changes: Any) -> Answer:
    return await client.post(ASK, BODY | changes)


async def test_a_script_asks_for_access_sees_the_decision_and_goes_on(
    anonymous: Client, world: World, clock: MovableClock
) -> None:
    client = anonymous.holding(world.tokens[WITHOUT])
    refused = await client.get("users/me")
    assert (refused.status, "POST /api/v1/access-requests." in refused.json["message"]) == (403, True)
    assert (await client.get(MINE)).status == 404
    asked = await ask(client)
    assert (asked.status, list(asked.json)) == (201, ["status", "access_request"])
    request_id = asked.json["access_request"]["id"]
    pending = {"id": request_id, "state": "pending", "created_at": isoformat(clock.now()), "reason": None}
    assert asked.json["access_request"] == pending == (await client.get(MINE)).json["access_request"]
    stored = world.do(lambda: api_access.get(request_id))
    assert [stored.email, stored.use_case, stored.organization, stored.volume] == [world.email(WITHOUT), *BODY.values()]
    event = world.do(lambda: security_events.find(limit=1))[0]
    assert (event.kind, event.account_id, event.actor) == ("access.requested", world.ids[WITHOUT], "api")
    world.do(lambda: api_access.approve(request_id, now=clock.now()))
    assert (await client.get(MINE)).json["access_request"] == pending | {"state": "approved"}
    assert (await client.get("users/me")).status == 200
    again = await ask(client)
    assert (again.status, "has API access already" in again.json["message"]) == (409, True)
    world.do(lambda: api_access.revoke(users.get(world.ids[WITHOUT]), now=clock.now()))
    assert ((await client.get(MINE)).json["access_request"]["state"], (await ask(client)).status) == ("approved", 201)


async def test_after_a_denial_the_reason_is_shown_and_a_day_passes_before_the_next_request(
    anonymous: Client, world: World, clock: MovableClock
) -> None:
    client = anonymous.holding(world.tokens[WITHOUT])
    assert (await ask(client)).status == 201
    clock.advance(3 * HOUR)
    world.do(lambda: api_access.deny(world.email(WITHOUT), "Say which music.", now=clock.now()))
    denied = (await client.get(MINE)).json["access_request"]
    assert (denied["state"], denied["reason"]) == ("denied", "Say which music.")
    again_at = clock.now() + DAY
    clock.advance(DAY - 1)
    early = await ask(client)
    assert (early.status, isoformat(again_at) in early.json["message"]) == (409, True)
    clock.advance(1)
    second = await ask(client, volume="12 albums")
    assert (second.status, second.json["access_request"]["id"] > denied["id"]) == (201, True)
    assert (await client.get(MINE)).json["access_request"] == second.json["access_request"]


async def test_of_two_requests_at_once_one_is_refused(anonymous: Client, world: World) -> None:
    client = anonymous.holding(world.tokens[WITHOUT])
    answers = await asyncio.gather(*(ask(client) for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409]
    assert not any("@" in answer.body.decode() for answer in answers)
    assert len(world.do(lambda: api_access.requests(pending=True, limit=9))) == 1


async def test_every_faulty_field_is_named_and_a_read_token_may_only_look(anonymous: Client, world: World) -> None:
    client = anonymous.holding(world.tokens[WITHOUT])
    assert (await client.post(ASK, {})).json["errors"].keys() == BODY.keys()
    wrong = await ask(client, use_case=" ", organization="x" * 501, volume="x" * 101)
    assert (wrong.status, wrong.json["errors"].keys()) == (422, BODY.keys())
    assert (await ask(client, use_case="x" * 500, organization="x" * 500, volume="x" * 100)).status == 201
    reader = anonymous.holding(world.tokens[READER])
    assert ((await ask(reader)).status, (await reader.get(MINE)).status) == (403, 404)


def test_the_page_has_the_bounds_of_the_api() -> None:
    schema = AccessForm.model_json_schema()["properties"]
    bounds = {name: (schema[name]["minLength"], schema[name]["maxLength"]) for name in BODY}
    assert bounds == {name: (1, api_access.LONGEST[name]) for name in BODY}


async def test_requests_without_access_count_for_the_address(store: Store, world: World, clock: MovableClock) -> None:
    settings = Settings(access=Access(contact_email="api@label.test"), limits=Limits(local=True, address="3/hour"))
    async with running(store, clock, settings) as client:
        first, second = client.holding(world.tokens[WITHOUT]), client.holding(world.tokens[OWNER])
        assert [(await first.get(MINE)).status, (await ask(first)).status, (await ask(first)).status] == [404, 201, 409]
        refused = await first.get(MINE)
        assert (refused.status, "your address" in refused.json["message"]) == (429, True)
        assert (await second.get(MINE)).status == 404
