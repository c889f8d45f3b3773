"""Rules that hold at the very next request of requests that were answered early before: decisions, time, limits.

Every request goes to two servers, one of which never answers early; their answers must be equal (test_both_ways.py).
Attacks on the early answer, each with its test:

- a token that was revoked, regenerated, suspended, expired: `test_a_change_shows_at_the_next_request`
- a clock that is set back: the same, and `access/test_authentication.py`
- more requests than a limit allows, by whatever way: `test_limits_are_exact_over_both_ways`
- an address that a header claims, another host, plain HTTP: the forms of `test_both_ways.py`, limits by address too
- a private object, a former collaborator: `test_a_change_shows_at_the_next_request`
- a client that reads nothing: `test_a_client_that_reads_late_gets_every_answer`
- packets that end anywhere, slow heads: `test_a_head_in_any_two_packets_is_one_request`, `network/test_slow_clients.py`
- pipelined requests without end: `test_first_steps.py`, `network/test_protocol.py`
- bodies, upgrades, two framings: the forms of `test_both_ways.py`, `network/test_fuzzing.py`
- heads without number, long heads: `test_first_steps.py`, `network/test_protocol.py`
- request ids and headers that lines of the log repeat: the forms of `test_both_ways.py`, `logs/test_program.py`
- values of tokens in errors, logs and metrics: `access/test_secrets.py`
- a flood by strangers: `test_limits_are_exact_over_both_ways`, `jobs/test_anonymous_calls.py`
- refusals again and again, which end a token: `jobs/test_abuse_traffic.py`, `access/test_rate_limits.py`
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from musicsvc.clock import DAY, MINUTE, MovableClock, isoformat
from musicsvc.config import Limits, Settings
from musicsvc.server.routes.route import V1
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Playlist, PlaylistInvite, User
from tests.support.both_ways import LONG, PLAIN, Form, Pair, two_ways
from tests.support.serving import person

pytestmark = pytest.mark.only_on("sqlite")  # on PostgreSQL, both servers count together

ALBUMS, PRIVATE, SHARED, OWN = f"{V1}/albums?perPage=50", f"{V1}/playlists/1", f"{V1}/playlists/2", f"{V1}/users/me"
UNLIMITED = Settings(limits=Limits(local=True, token="1000000/hour", address="1000000/hour"))
NAME = "Sonatas for two flutes, with an index of all first lines and their translations "


@dataclass
class World:
    """An account and its token, another one that owns two playlists, 60 albums, and both servers."""

    store: Store
    clock: MovableClock
    user_id: int
    token: str
    pair: Pair

    async def ask(self, target: str, form: Form = PLAIN, *, token: bool = True) -> Any:
        headers = (f"Authorization: Bearer {self.token}",) if token else ()
        return await self.pair.ask(form.raw(target, headers, ""), form)

    async def warm(self, target: str, *, token: bool = True) -> Any:
        """Send the request until it is answered early."""
        last = [await self.ask(target, token=token) for _ in range(3)][-1]
        assert (last.status, last.early) == (200, 1)
        return last


def fill(store: Store, clock: MovableClock) -> tuple[int, str]:
    user_id, token = person(store, clock, "ann@label.test")
    other, _ = person(store, clock, "bob@label.test")

    def make() -> None:
        times = {"created_at": clock.now(), "expires_at": clock.now() + DAY}
        for number in range(1, 61):
            album = Album.create(name=f"{NAME}{number}", created_at=clock.now() + number)
            artist = Artist.create(name=f"Artist {number}", created_at=1)
            AlbumArtist.create(album=album, artist=artist, position=0)
        for public in (True, False):
            made = Playlist.create(name="P", owner=other, created_at=1, public=public, collaborative=True)
        PlaylistInvite.create(playlist=made, user=user_id, state="accepted", **times)

    store.write(make).result()
    return user_id, token


@pytest.fixture
async def world(store: Store, clock: MovableClock) -> AsyncIterator[World]:
    user_id, token = fill(store, clock)
    async with two_ways(store, clock, UNLIMITED) as pair:
        yield World(store, clock, user_id, token, pair)


Change = Callable[[World], object]
CHANGES: dict[str, tuple[str, Change, int]] = {
    "revoked": (ALBUMS, lambda world: tokens.revoke(1, "a test", now=world.clock.now()), 401),
    "regenerated": (ALBUMS, lambda world: tokens.regenerate(1, now=world.clock.now()), 401),
    "suspended": (OWN, lambda world: users.suspend(users.get(world.user_id), now=world.clock.now()), 403),
    "without access": (ALBUMS, lambda world: api_access.revoke(users.get(world.user_id), now=1), 403),
    "private": (PRIVATE, lambda _: Playlist.update(public=False).where(Playlist.id == 1).execute(), 404),
    "no collaborator": (SHARED, lambda _: PlaylistInvite.delete().execute(), 404),
    "deleted": (PRIVATE, lambda _: Playlist.delete().where(Playlist.id == 1).execute(), 404),
    "renamed": (ALBUMS, lambda _: Album.update(name="Suites").where(Album.id == 60).execute(), 200),
    "another name": (OWN, lambda _: User.update(display_name="Ann Example").where(User.id == 1).execute(), 200),
}


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "another"])
@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_shows_at_the_next_request(world: World, name: str, *, elsewhere: bool) -> None:
    target, change, status = CHANGES[name]
    before = await world.warm(target)
    if elsewhere:
        with opening.connect(world.store.url) as other:
            await asyncio.wrap_future(other.write(lambda: change(world)))
    else:
        await asyncio.wrap_future(world.store.write(lambda: change(world)))
    after = await world.ask(target)
    assert (after.status, after.early) == (status, 0)
    if status == 200:
        assert after.tag != before.tag
        await world.warm(target)
    assert (await world.ask(target)).status == status


async def test_time_shows_at_the_next_request(world: World) -> None:
    ends = b"\r\nToken-Expires-At: " + isoformat(world.clock.now() + tokens.LIFETIME).encode()
    for days in (0, 75):
        world.clock.advance(days * DAY)
        assert ends not in (await world.warm(ALBUMS)).answers[0]
    world.clock.advance(DAY)
    last = await world.ask(ALBUMS)
    assert last.early == 1
    assert ends in last.answers[0]
    world.clock.advance(14 * DAY - 1)
    assert (await world.ask(ALBUMS)).status == 200
    world.clock.advance(1)
    assert (await world.ask(ALBUMS)).status == 401
    world.clock.advance(-MINUTE)
    assert (await world.ask(ALBUMS)).status == 401


BOTH = (PLAIN, PLAIN, PLAIN, Form(LONG, method="HEAD"), PLAIN, Form(LONG, count=2), Form(headers=("Accept: */*",)))


@pytest.mark.parametrize("token", [True, False])
async def test_limits_are_exact_over_both_ways(store: Store, clock: MovableClock, *, token: bool) -> None:
    limits = Limits(local=True, token="13/minute", address="13/minute")
    async with two_ways(store, clock, Settings(limits=limits)) as pair:
        world = World(store, clock, *fill(store, clock), pair)
        for _ in range(3):
            statuses, early = [], 0
            for form in (*BOTH, *BOTH):
                asked = await world.ask(ALBUMS, form, token=token)
                statuses += [int(answer.split(b" ", 2)[1]) for answer in asked.answers]
                early += asked.early
            assert statuses == [*[200] * 13, *[429] * (len(statuses) - 13)]
            assert early >= 4
            clock.advance(3 * MINUTE)


async def test_a_client_that_reads_late_gets_every_answer(world: World) -> None:
    expected = await world.warm(ALBUMS)
    raw, number = PLAIN.raw(ALBUMS, (f"Authorization: Bearer {world.token}",), ""), 300
    before, found = world.pair.early.answered, []
    for way in (world.pair.early, world.pair.long):
        for _ in range(number):
            await way.send(raw, PLAIN)
            await asyncio.sleep(0.001)  # so that each comes alone
        found.append(await way.answers(Form(count=number)))
    assert 0 < world.pair.early.answered - before < number
    assert found[0] == found[1]
    assert {answer.partition(b"\r\n\r\n")[2] for answer in found[0]} == {expected.answers[0].partition(b"\r\n\r\n")[2]}
    await world.warm(ALBUMS)


async def test_a_head_in_any_two_packets_is_one_request(world: World) -> None:
    await world.warm(OWN)
    raw = PLAIN.raw(OWN, (f"Authorization: Bearer {world.token}",), "")
    for cut in range(1, len(raw)):
        for way in (world.pair.early, world.pair.long):
            await way.send(raw[:cut], PLAIN)
        await asyncio.sleep(0.001)
        assert (await world.pair.ask(raw[cut:])).status == 200, raw[:cut]
