"""Each tier has exactly its keys, in the documented order."""

from functools import partial

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import JSON_MEDIA, Access
from musicsvc.store.engine.store import Store
from tests.paging import world as worlds
from tests.rights.world import OWNER, World
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest
from tests.support.response_keys import check
from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@pytest.mark.slow
async def test_every_read_has_the_keys_of_its_tier_and_no_others(
    anonymous: Client, store: Store, clock: MovableClock
) -> None:
    filled = store.write(partial(worlds.build, anonymous.root, clock.now())).result()
    client = anonymous.holding(filled.tokens["ann"])
    world = World(store, clock)
    for route in TESTED_ROUTES:
        if route.method != "GET" or route.answer is None or route.docs.media != JSON_MEDIA:
            continue
        valid = ValidRequest(world, route)
        # The first one of the filled world that ann may read, else the owner's.
        paths = [valid.about(1) + valid.query, valid.path + valid.query]
        answers = [await client.get(paths[0]), await client.holding(world.tokens[OWNER]).get(paths[1])]
        assert answers[-1].status == 200, paths
        for answer in answers:
            if answer.status == 200:
                check(answer.json, route.answer, paths[0])
        if route.access is Access.PUBLIC:
            public = await anonymous.get(paths[0])
            assert public.status == 200
            check(public.json, route.public_answer or route.answer, f"{paths[0]} without a token")
