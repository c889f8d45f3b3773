"""Wrong passwords are limited by account and by address."""

from dataclasses import replace

import pytest

from musicsvc.config import Limits
from musicsvc.errors import TooMany
from musicsvc.server.access.rate_limits import Attempt, RateLimitCounter, RateLimiter
from musicsvc.server.call import Call
from musicsvc.server.routes.route import Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.engine.store import Store
from tests.support.monotonic_clock import StoppedClock


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


async def test_an_address_has_fifty_wrong_passwords_an_hour(store: Store, clock: StoppedClock) -> None:
    counter = RateLimitCounter(store, clock)
    limiter = RateLimiter(Limits(), counter)
    call = Call(0, 0.0, "", "POST", "192.0.2.1", limits_apply=True)
    for number in range(50):
        attempt = await limiter.count_attempt("right", call, sign_in=False)
        await limiter.settle(attempt, right=True)  # these do not count
        await limiter.count_attempt(f"account {number}", call, sign_in=False)
    with pytest.raises(TooMany, match=r"There were too many wrong passwords\. Try again in 60 minutes\."):
        await limiter.count_attempt("another account", call, sign_in=False)
    assert call.refused_by == "sign_in_address"
    assert call.headers["RateLimit-Policy"] == '"sign_in_address";q=50;w=3600'
    assert await limiter.count_attempt("another account", replace(call, address="192.0.2.2"), sign_in=False)
    assert await limiter.count_attempt("another account", replace(call, limits_apply=False), sign_in=False) == Attempt()
    await counter.close()


async def test_a_request_without_capacity_is_uncounted_once(store: Store, clock: StoppedClock) -> None:
    """Even if the page that says so finds no capacity either."""
    counter = RateLimitCounter(store, clock)
    limiter = RateLimiter(Limits(), counter)
    route = next(route for route in ROUTES if (route.method, route.path) == ("POST", "/register"))
    calls = [Call(0, 0.0, "", "POST", "192.0.2.1", limits_apply=True) for _ in range(4)]
    for call in calls[:3]:
        await _counted(limiter, route, call)
    for _ in range(2):
        await limiter.uncount(calls[2])
    await _counted(limiter, route, calls[3])
    assert calls[3].headers["X-RateLimit-Remaining"] == "7"
    await counter.close()


async def _counted(limiter: RateLimiter, route: Route, call: Call) -> None:
    if (counting := limiter.count(route, call)) is not None:
        await counting
