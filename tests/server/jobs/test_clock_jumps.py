"""Jumps of the system clock: no expired token is valid again, no request fails, figures stay correct."""

import asyncio
import logging

import pytest

from musicsvc.clock import DAY, MINUTE, SECOND, MovableClock, isoformat, parse
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import verify
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support import listening_world
from tests.support.bounds import Bounds
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest
from tests.support.serving import Client, person, running

YEAR = 365 * DAY
JUMPS = {
    "a day on": DAY,
    "a day back": -DAY,
    "ten years on": 10 * YEAR,
    "ten years back": -10 * YEAR,
    "1970": 1000 * SECOND - parse("2026-03-01T12:00:00Z"),
    "9999": parse("9998-12-31T12:00:00Z") - parse("2026-03-01T12:00:00Z"),
}
SHORT = {"a day back", "ten years on"}
EACH = [pytest.param(jump, id=name, marks=[] if name in SHORT else [pytest.mark.long]) for name, jump in JUMPS.items()]


async def status(client: Client, token: str | None = None) -> int:
    return (await client.holding(token or client.token).get("users/me")).status


async def test_a_start_with_the_clock_set_back_makes_no_expired_token_valid(store: Store, clock: MovableClock) -> None:
    _, old = person(store, clock, "ann@label.test")
    clock.advance(50 * DAY)
    _, young = person(store, clock, "ben@label.test")
    clock.advance(40 * DAY)
    async with running(store, clock) as client:
        assert [await status(client, old), await status(client, young)] == [401, 200]
    clock.advance(-20 * DAY)
    for _ in range(2):
        async with running(store, clock) as client:
            assert [await status(client, old), await status(client, young)] == [401, 200]


async def test_an_idle_server_remembers_the_latest_time_and_says_so(
    store: Store, clock: MovableClock, bounds: Bounds, caplog: pytest.LogCaptureFixture
) -> None:
    """An idle worker follows the clock, as the others may refuse expired tokens meanwhile."""
    bounds(job_seconds=0.01)
    _, token = person(store, clock, "ann@label.test")
    async with running(store, clock) as client:
        clock.advance(tokens.LIFETIME)
        await asyncio.sleep(0.5)
        ahead = clock.now()
        clock.advance(-DAY)
        assert await status(client, token) == 401
        await asyncio.sleep(0.5)
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told.startswith(f"the system clock was set back from {isoformat(ahead)[:16]}")


async def test_a_clock_that_was_years_ahead_is_logged_with_a_remedy(
    store: Store, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    _, token = person(store, clock, "ann@label.test")
    clock.advance(10 * YEAR)
    _, ahead = person(store, clock, "ben@label.test")
    async with running(store, clock) as client:
        assert await status(client, ahead) == 200
    clock.advance(-10 * YEAR)
    with caplog.at_level(logging.WARNING, "musicsvc"):
        async with running(store, clock) as client:
            assert await status(client, token) == 401
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(
        "the system clock is behind the last recorded use of token 2 (2036-02-27T12:00:00.000000Z). "
    )
    assert told.endswith("If the recorded time is wrong, revoke the token and restart.")
    store.write(lambda: tokens.revoke(2, "made while the clock was wrong", now=clock.now())).result()
    async with running(store, clock) as client:
        assert await status(client, token) == 200


@pytest.mark.parametrize(("behind", "told"), [(MINUTE, False), (MINUTE + 1, True)])
async def test_a_clock_is_reported_behind_from_a_minute_on(
    store: Store, clock: MovableClock, caplog: pytest.LogCaptureFixture, behind: int, *, told: bool
) -> None:
    _, token = person(store, clock, "ann@label.test")
    async with running(store, clock) as client:
        assert await status(client, token) == 200
    clock.advance(-behind)
    async with running(store, clock) as client:
        assert await status(client, token) == 200
    assert ("system clock is behind" in caplog.text) == told


@pytest.mark.slow
@pytest.mark.parametrize("jump", EACH)
async def test_no_endpoint_fails_because_the_clock_has_jumped(store: Store, clock: MovableClock, jump: int) -> None:
    world = World(store, clock)
    valid_requests = [ValidRequest(world, route) for route in TESTED_ROUTES]
    async with running(store, clock) as client:
        old = client.holding(world.tokens[OWNER])
        assert await status(old) == 200
        clock.advance(jump)
        ended = jump >= tokens.LIFETIME
        assert await status(old) == (401 if ended else 200)
        fresh = world.do(lambda: tokens.create(users.get(world.ids[OWNER]), "fresh", now=clock.now())[1])
        after = client.holding(fresh) if ended else old
        for valid in valid_requests:
            answer = await after(valid.method, valid.path + valid.query, valid.body)
            # A cover's picture is there for a day.
            late = valid.path.startswith("/cover-art/previews/") and jump >= DAY
            assert answer.status == (404 if late else valid.status), (endpoint(valid.route), answer.body)
        clock.advance(-jump)
        assert await status(old) == (401 if ended else 200)


@pytest.mark.parametrize("jump", EACH)
async def test_plays_are_counted_before_and_after_a_jump(store: Store, clock: MovableClock, jump: int) -> None:
    made = store.write(lambda: listening_world.catalog(clock.now())).result()
    track = made.tracks[0]

    async def report(client: Client, name: str) -> tuple[int, int]:
        play = {"track_id": track, "played_at": clock.now() // SECOND, "client_id": name}
        accepted = (await client.post("plays", {"plays": [play]})).json["accepted"]
        figures = (await client.get(f"{INSIGHTS}/tracks/{track}")).json
        return accepted, figures["data"]["plays"]["total"]

    async with running(store, clock) as client:
        assert await report(client.holding(made.token), "before") == (1, 1)
    clock.advance(jump)
    fresh = store.write(lambda: tokens.create(users.get(made.manager.user_id), "fresh", now=clock.now())[1]).result()
    async with running(store, clock) as client:
        assert await report(client.holding(made.token if jump < 0 else fresh), "after") == (1, 2)
    report_after = verify.run(store, check=True, on_progress=lambda *_: None)
    assert report_after.differing == 0
