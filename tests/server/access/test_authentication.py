"""Authentication: the holder of a token, and the end of its validity."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from musicsvc.clock import DAY, MINUTE, SECOND, MovableClock, isoformat
from musicsvc.config import Limits, Settings
from musicsvc.server.access import authentication
from musicsvc.server.access.rate_limits import RateLimitCounter, RateLimiter
from musicsvc.server.call import Call
from musicsvc.server.freshness import Freshness, Stamp
from musicsvc.server.routes.route import V1, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist
from tests.support.bounds import Bounds
from tests.support.query_count import queries
from tests.support.raw_connection import connected, request
from tests.support.serving import Client, person, running
from tests.support.waiting import until

PRIVATE, PUBLIC = f"{V1}/users/me", f"{V1}/albums"


async def statuses(client: Client) -> list[int]:
    """Return the statuses of a request that needs a token and of one that does not."""
    return [(await client.get(path)).status for path in (PRIVATE, PUBLIC)]


def change(store: Store, unit: Callable[[], Any]) -> None:
    """Write through a second store, as another process does."""
    with opening.connect(store.url) as other:
        other.write(unit).result()


async def test_a_token_lives_90_days_to_the_second(client: Client, clock: MovableClock) -> None:
    clock.advance(90 * 86_400 * SECOND - SECOND)
    assert await statuses(client) == [200, 200]
    clock.advance(SECOND - 1)
    assert await statuses(client) == [200, 200]
    clock.advance(1)
    assert await statuses(client) == [401, 401]


async def test_any_number_of_blanks_is_between_scheme_and_token(client: Client) -> None:
    token, same = client.token, []
    async with connected(client.root) as wire:
        for value in (f"Bearer {token}", f"bearer  {token}", f"BEARER{' ' * 500}{token}", f"   Bearer   {token}  "):
            for path in (PRIVATE, PUBLIC):
                await wire.send(request("GET", path, f"Authorization: {value}"))
                answer = await wire.answer()
                assert answer.status == 200, value
                same.append(answer.body)
    assert same == same[:2] * 4


async def test_responses_name_the_expiry_in_the_last_14_days_of_a_token(client: Client, clock: MovableClock) -> None:
    expires = isoformat(clock.now() + tokens.LIFETIME)
    paths = (PRIVATE, PUBLIC, f"{V1}/tracks/9", f"{V1}/albums?page=0")

    async def told() -> list[str | None]:
        return [(await client.get(path)).headers.get("Token-Expires-At") for path in paths]

    clock.advance(76 * DAY - 1)
    assert await told() == [None] * 4
    clock.advance(1)
    assert await told() == [expires] * 4
    assert "Token-Expires-At" not in (await client.holding(None).get(PUBLIC)).headers
    # Where the token is ignored, nothing is said of it.
    registered = await client.post(f"{V1}/auth/register", {"email": "eve@label.test", "password": "long enough"})
    ignoring = [registered, await client.get(f"{V1}/openapi.json")]
    assert [(answer.status, "Token-Expires-At" in answer.headers) for answer in ignoring] == [(200, False)] * 2
    clock.advance(14 * DAY)
    assert await told() == [None] * 4  # it is no token any more


async def test_a_clock_set_back_makes_no_expired_token_valid(client: Client, store: Store, clock: MovableClock) -> None:
    _, other = person(store, clock, "bob@label.test")
    change(store, lambda: tokens.revoke(2, "a test", now=clock.now()))
    clock.advance(tokens.LIFETIME)
    assert await statuses(client) == [401, 401]
    clock.advance(-10 * MINUTE)
    assert await statuses(client) == [401, 401]
    assert await statuses(client.holding(other)) == [401, 401]


DECISIONS: dict[str, tuple[Callable[[int], Any], int]] = {
    "revoked": (lambda now: tokens.revoke(1, "a test", now=now), 401),
    "regenerated": (lambda now: tokens.regenerate(1, now=now), 401),
    "access taken away": (lambda _: api_access.revoke(users.get(1), now=1), 403),
    "suspended": (lambda now: users.suspend(users.get(1), now=now), 403),
}
everywhere = pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "another"])


def decide(store: Store, unit: Callable[[], Any], *, elsewhere: bool) -> None:
    if elsewhere:
        change(store, unit)
    else:
        store.write(unit).result()


@pytest.mark.parametrize("decision", DECISIONS)
@everywhere
async def test_a_decision_takes_effect_at_the_next_request(
    client: Client, store: Store, clock: MovableClock, decision: str, *, elsewhere: bool
) -> None:
    unit, status = DECISIONS[decision]
    async with connected(client.root) as wire:
        raw = request("GET", PRIVATE, f"Authorization: Bearer {client.token}")
        for _ in range(3):
            await wire.send(raw)
            assert (await wire.answer()).status == 200
        decide(store, lambda: unit(clock.now()), elsewhere=elsewhere)
        await wire.send(raw)
        assert (await wire.answer()).status == status
    assert await statuses(client) == [status, status]


@everywhere
async def test_a_decision_between_head_and_body_stops_the_write(
    client: Client, store: Store, clock: MovableClock, *, elsewhere: bool
) -> None:
    body = b'{"name": "Barbara Strozzi"}'
    head = ["Content-Type: application/json", "Expect: 100-continue", f"Content-Length: {len(body)}"]
    unit, status = DECISIONS["suspended" if elsewhere else "revoked"]
    async with connected(client.root) as wire:
        raw = request("POST", f"{V1}/artists", f"Authorization: Bearer {client.token}", *head)
        for expected in (201, status):
            await wire.send(raw)
            assert (await wire.answer()).status == 100  # the token has been accepted
            if expected == status:
                decide(store, lambda: unit(clock.now()), elsewhere=elsewhere)
            await wire.send(body)
            assert (await wire.answer()).status == expected
    assert store.read(lambda: Artist.select().count()).result() == 1


@pytest.mark.on_both
async def test_an_undone_decision_takes_effect_at_the_next_request(
    client: Client, store: Store, clock: MovableClock
) -> None:
    change(store, lambda: tokens.revoke(1, "a test", now=clock.now()))
    assert await statuses(client) == [401, 401]
    change(store, lambda: tokens.reinstate(1, now=1))
    assert await statuses(client) == [200, 200]
    change(store, lambda: users.suspend(users.get(1), now=clock.now()))
    assert await statuses(client) == [403, 403]
    change(store, lambda: users.reinstate(users.get(1), now=1))
    assert await statuses(client) == [200, 200]


@pytest.mark.only_on("sqlite")
async def test_a_checked_token_is_cached_until_the_database_changes(client: Client, store: Store) -> None:
    assert (await client.get(PRIVATE)).status == 200
    await until(lambda: store.read(lambda: tokens.get(1).last_used_at).result() is not None)  # which is a change too
    assert (await client.get(PRIVATE)).status == 200
    with queries(store) as asked:
        for _ in range(3):
            assert (await client.get(PRIVATE)).status == 200
        assert [event.sql for event in asked if "digest" in event.sql] == []
        change(store, lambda: users.create("new@label.test", now=1))
        assert (await client.get(PRIVATE)).status == 200
        assert len([event.sql for event in asked if "digest" in event.sql]) == 1


async def test_the_scheme_is_read_in_any_case_and_blanks_around_are_no_part_of_a_token(client: Client) -> None:
    async with connected(client.root) as wire:
        for value in ("Bearer {}", "bearer {}", "BEARER {}", "Bearer {}  ", "  Bearer {}\t"):
            await wire.send(request("GET", PRIVATE, f"authorization:{value.format(client.token)}"))
            assert (await wire.answer()).status == 200, value


@asynccontextmanager
async def used(store: Store, clock: MovableClock) -> AsyncIterator[tuple[Client, Callable[[], Any]]]:
    """A client, and a function that reads the last use of its token from the database."""
    async with running(store, clock) as client:
        holder = client.holding(person(store, clock, "ann@label.test")[1])
        yield holder, lambda: store.read(lambda: tokens.get(1).last_used_at).result()


async def test_last_use_is_not_written_by_the_request_and_at_the_end_at_last(
    store: Store, clock: MovableClock, bounds: Bounds
) -> None:
    bounds(job_seconds=600)
    async with used(store, clock) as (client, last_used):
        assert (await client.get(PRIVATE)).status == 200
        assert last_used() is None
    assert store.read(lambda: tokens.get(1).last_used_at).result() == clock.now()


async def test_last_use_is_written_in_the_background_at_most_once_a_minute(
    store: Store, clock: MovableClock, bounds: Bounds
) -> None:
    bounds(job_seconds=0.1)
    first = clock.now()
    async with used(store, clock) as (client, last_used):
        assert (await client.get(PRIVATE)).status == 200
        await until(lambda: last_used() == first)
        clock.advance(59 * SECOND)
        assert (await client.get(PRIVATE)).status == 200
        await asyncio.sleep(0.3)
        assert last_used() == first
        clock.advance(SECOND)
        await until(lambda: last_used() == first + 59 * SECOND)
        clock.advance(SECOND)
        assert (await client.get(PRIVATE)).status == 200
    assert store.read(lambda: tokens.get(1).last_used_at).result() == first + 61 * SECOND  # at the end, whatever it is


async def test_refused_requests_do_not_count_as_use(store: Store, clock: MovableClock) -> None:
    async with used(store, clock) as (client, _):
        store.write(lambda: api_access.revoke(users.get(1), now=1)).result()
        assert (await client.get(PRIVATE)).status == 403
    assert store.read(lambda: tokens.get(1).last_used_at).result() is None


async def test_few_tokens_are_kept_in_memory_and_the_one_unused_for_longest_goes_first(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(known_tokens=2)
    counter, freshness = RateLimitCounter(store, clock), Freshness(store)
    limiter = RateLimiter(Limits(), counter)
    authenticator = authentication.Authenticator(store, clock, Settings(), limiter, freshness)
    monkeypatch.setattr(freshness, "holds", lambda *_, **__: True)
    monkeypatch.setattr(freshness, "now", lambda: Stamp(1, 0.0))
    ann, ben, cleo = (f"Bearer {person(store, clock, f'{name}@label.test')[1]}" for name in ("ann", "ben", "cleo"))
    route, _ = Router(ROUTES).match("GET", PRIVATE)
    for header in (ann, ben, ann, cleo):
        await authenticator.reauthenticate(header, Call(0, clock.monotonic(), "", "GET"), route)
    found = [
        authenticator.authenticate(route, header, Call(0, clock.monotonic(), "", "GET")) for header in (ann, ben, cleo)
    ]
    assert [waiting is None for waiting in found] == [True, False, True]
    assert found[1] is not None
    await found[1]
    await counter.close()
