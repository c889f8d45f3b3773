"""Recorded traffic played to a real server, with limits and thresholds as they come, in a time that the test moves."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from musicsvc.clock import SECOND, Clock
from musicsvc.config import Limits, Settings
from musicsvc.store.accounts import tokens
from musicsvc.store.catalog import artists, tracks
from musicsvc.store.playlists import playlists
from tests.support.serving import Client, person, running
from tests.support.traffic import BEGAN, OWN, Asked, Profile, profiles

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.engine.store import Store

SETTINGS = Settings(limits=Limits(local=True))
ROUND = 2.5  # seconds in which the judge has come round
HONEST = ["stale cache"]
ATTACKS = ["hammer", "hidden in noise"]
MORE_HONEST = ["eight threads", "page walk", "six connections", "all at once", "to the letter", "undefined"]
MORE_ATTACKS = ["hammer of many", "always too early", "bursts without a pause", "catalog by pages", "private playlists"]
TRAFFIC = {profile.name: profile for profile in (*profiles("honest"), *profiles("attacks"))}


class DrivenClock(Clock):
    """A clock that stands where the traffic is."""

    at = 0.0

    def now(self) -> int:
        return BEGAN + int(self.at * SECOND)

    def monotonic(self) -> float:
        return 1000 + self.at


def furnish(actor: Identity) -> None:
    """So many things of its own as the traffic asks for, with the ids from 1 on."""
    for number in range(1, OWN + 1):
        artist = artists.create(f"Artist {number}", None, None, now=BEGAN, actor=actor)
        values = {"name": f"Track {number}", "duration": 1000}
        assert tracks.create(values, [artist.id], genre=None, tag_names=(), now=BEGAN, actor=actor).id == number
        assert playlists.create({"name": f"List {number}"}, now=BEGAN, actor=actor).id == number


async def play(profile: Profile, client: Client, clock: DrivenClock) -> int:
    """Send the profile's requests, until the token is refused; how many there were."""
    course, sent = profile.course(), 0
    asked = next(course)
    with suppress(StopIteration):
        while True:
            clock.at = max(clock.at, asked.at)
            answer = await client(*_request(asked))
            sent += 1
            if answer.status == 401:
                break
            assert answer.status in {429, asked.step.get("status", 200)} or asked.step["ask"].startswith("DELETE")
            retry_after = int(answer.headers["Retry-After"]) if answer.status == 429 else None
            asked = course.send(retry_after)
    return sent


def _request(asked: Asked) -> tuple[str, str]:
    method, _, route = asked.step["ask"].partition(" ")
    return method, route.replace("{id}", "undefined" if asked.thing is None else str(asked.thing))


async def revoked(store: Store, name: str) -> str | None:
    """Why the token is revoked after the profile was played, None where it is not."""
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


@pytest.mark.only_on("sqlite")  # PostgreSQL counts by its own clock
@pytest.mark.parametrize("name", [*HONEST, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_HONEST)])
async def test_an_honest_client_keeps_its_token(store: Store, name: str) -> None:
    assert await revoked(store, name) is None


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("name", [*ATTACKS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_ATTACKS)])
async def test_an_attack_ends_with_its_token(store: Store, name: str) -> None:
    reason = await revoked(store, name)
    assert reason is not None
    assert ("different resources" in reason) == (TRAFFIC[name].rule == "probing")
    assert ("paging" in reason) == (TRAFFIC[name].rule == "scraping")
