"""Requests with an `Idempotency-Key`: what is answered again, and what is not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from musicsvc.server.routes.route import V1, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.models import (
    AccessRequest,
    Album,
    Artist,
    Collection,
    Comment,
    Conversation,
    Message,
    Play,
    Playlist,
    Track,
)
from tests.rights.table import BODIES, RIGHTS, endpoint, key, path_of
from tests.rights.world import OWNER, World
from tests.support.people import make_tracks
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop
MADE: Mapping[str, Any] = {  # by the endpoints of the contract, what their requests make
    f"POST {V1}/albums": Album,
    f"POST {V1}/tracks": Track,
    f"POST {V1}/artists": Artist,
    f"POST {V1}/playlists": Playlist,
    f"POST {V1}/collections": Collection,
    f"POST {V1}/messaging/messages": Message,
    f"POST {V1}/messaging/conversations": Conversation,
    f"POST {V1}/tracks/{{id}}/comments": Comment,
    f"POST {V1}/plays": Play,
    f"POST {V1}/access-requests": AccessRequest,
}
KEYED = [route for route in ROUTES if route.keyed]
REPLAYED = "Idempotency-Replayed"


class Asked(NamedTuple):
    """A request that can be sent, and a client that may send it."""

    client: Client
    path: str
    body: Any


def prepare(shared: Shared, route: Route) -> Asked:
    who = "without access" if route.path.endswith("access-requests") else OWNER
    world: World = shared.world((who,))
    right = RIGHTS[key(route)][""]
    subject = world.do(lambda: right.make(world, who))
    if endpoint(route) == f"POST {V1}/plays":
        subject = make_tracks(shared.store, 1)[0]
    body = BODIES[endpoint(route)](world, who, subject)
    if endpoint(route) == f"POST {V1}/plays":
        body["plays"][0]["track_id"] = subject
    client = CheckedClient(shared.client.session, shared.client.root, world.tokens[who])
    return Asked(client, path_of(route, subject), body)


def count(shared: Shared, model: Any) -> int:
    return int(shared.store.read(lambda: model.select().count()).result())


def with_key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


async def test_the_endpoints_that_keep_answers_are_those_of_the_contract() -> None:
    assert {endpoint(route) for route in KEYED} == {*MADE}


@pytest.mark.parametrize("route", KEYED, ids=endpoint)
async def test_a_repeated_request_is_not_executed_again(shared: Shared, route: Route) -> None:
    asked, model = prepare(shared, route), MADE[endpoint(route)]
    before = count(shared, model)

    first = await asked.client.post(asked.path, asked.body, headers=with_key('"k"'))
    again = await asked.client.post(asked.path, asked.body, headers=with_key("k"))

    assert (first.status, REPLAYED in first.headers) == (route.status, False)
    assert (again.status, again.headers[REPLAYED], again.body) == (route.status, "true", first.body)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert count(shared, model) == before + 1
