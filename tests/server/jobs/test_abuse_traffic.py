"""Recorded traffic played to a real server with default limits and thresholds, on a clock that the test moves."""

import asyncio
import time
from contextlib import suppress

import pytest

from musicsvc.clock import SECOND, Clock
from musicsvc.config import Limits, Settings
from musicsvc.store.accounts import tokens
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import artists, tracks
from musicsvc.store.engine.store import Store
from musicsvc.store.playlists import playlists
from tests.support.serving import Client, person, running
from tests.support.traffic import BEGAN, OWN, Profile, Request, profiles

SETTINGS = Settings(limits=Limits(local=True))
ROUND = 2.5  # seconds in which the monitor evaluates every token
HONEST = ["stale cache"]
ATTACKS = ["hammer", "hidden in noise"]
MORE_HONEST = ["eight threads", "page walk", "six connections", "all at once", "to the letter", "undefined"]
MORE_ATTACKS = ["hammer of many", "always too early", "bursts without a pause", "catalog by pages", "private playlists"]
TRAFFIC = {profile.name: profile for profile in (*profiles("honest"), *profiles("attacks"))}


class DrivenClock(Clock):
    """A clock set to the time of the traffic."""

    at = 0.0

    def now(self) -> int:
        return BEGAN + int(self.at * SECOND)

    def monotonic(self) -> float:
        return 1000 + self.at


def furnish(actor: Identity) -> None:
    """Create as many own resources as the traffic requests, with ids from 1."""
    for number in range(1, OWN + 1):
        artist = artists.create(f"Artist {number}", None, None, now=BEGAN, actor=actor)
        values = {"name": f"Track {number}", "duration": 1000}
        assert tracks.create(values, [artist.id], genre=None, tag_names=(), now=BEGAN, actor=actor).id == number
        assert playlists.create({"name": f"List {number}"}, now=BEGAN, actor=actor).id == number


async def play(profile: Profile, client: Client, clock: DrivenClock) -> int:
    """Send the requests of the profile until the token is refused. Return their number."""
    requests, sent = profile.requests(), 0
    request = next(requests)
    with suppress(StopIteration):
        while True:
            clock.at = max(clock.at, request.at)
            answer = await client(*_method_and_path(request))
            sent += 1
            if answer.status == 401:
                break
            assert answer.status in {429, request.step.get("status", 200)} or request.step["request"].startswith(
                "DELETE"
            )
            retry_after = int(answer.headers["Retry-After"]) if answer.status == 429 else None
            request = requests.send(retry_after)
    return sent


def _method_and_path(request: Request) -> tuple[str, str]:
    method, _, route = request.step["request"].partition(" ")
    return method, route.replace("{id}", "undefined" if request.resource_id is None else str(request.resource_id))


async def revoked(store: Store, name: str) -> str | None:
    """Return the reason of the revocation after the profile, or None."""
    clock = DrivenClock()
    _, value = person(store, clock, "ann@label.test")
    identity = store.read(lambda: tokens.identify(tokens.digest(value))).result()
    assert identity is not None
    store.write(lambda: furnish(identity)).result()
    async with running(store, clock, SETTINGS) as client:
        await play(TRAFFIC[name], client.holding(value), clock)
        clock.at += 2
        deadline = time.monotonic() + ROUND
        while time.monotonic() < deadline:
            token = store.read(lambda: tokens.find_by_value(value)).result()
            if token is not None and token.revoked_reason is not None:
                return str(token.revoked_reason)
            await asyncio.sleep(0.1)
    return None


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # PostgreSQL counts by its own clock
@pytest.mark.parametrize("name", [*HONEST, *(pytest.param(name, marks=pytest.mark.long) for name in MORE_HONEST)])
async def test_an_honest_client_keeps_its_token(store: Store, name: str) -> None:
    assert await revoked(store, name) is None


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("name", [*ATTACKS, *(pytest.param(name, marks=pytest.mark.long) for name in MORE_ATTACKS)])
async def test_an_attack_ends_with_its_token(store: Store, name: str) -> None:
    reason = await revoked(store, name)
    assert reason is not None
    assert ("different resources" in reason) == (TRAFFIC[name].rule == "probing")
    assert ("paging" in reason) == (TRAFFIC[name].rule == "scraping")
