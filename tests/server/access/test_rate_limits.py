"""Rate limits: counting, refusals and response headers (docs/limits.md)."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from musicsvc.clock import DAY
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.access.rate_limits import HEADERS
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from tests.rights.world import World
from tests.server.jobs.test_activity_writer import logged
from tests.support.monotonic_clock import StoppedClock
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client, person, running

sqlite = pytest.mark.only_on("sqlite")  # PostgreSQL counts by its own clock, which no test moves
NEWCOMER = {"email": "new@label.test", "password": "three romances"}


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@asynccontextmanager
async def limited(store: Store, clock: StoppedClock, workers: int = 1, **limits: object) -> AsyncIterator[Client]:
    """Run a worker of a server with limits for local requests; yield a client without a token."""
    limited = Limits.model_validate({"local": True, **limits})
    settings = Settings(limits=limited, server=Server(workers=workers))
    async with running(store, clock, settings) as client:
        yield client


def told(answer: Answer) -> dict[str, str]:
    """Return the rate-limit headers of the response."""
    return {name: value for name, value in answer.headers.items() if name in HEADERS}


def left(answer: Answer) -> dict[str, int]:
    """Return the remaining requests by limit."""
    return {name: int(count) for name, count in re.findall(r'"(\w+)";r=(\d+)', answer.headers.get("RateLimit", ""))}


@sqlite
async def test_every_limited_response_has_the_limit_headers(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock) as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        first = await client.get("albums")
        assert told(first) == {
            "RateLimit-Policy": '"token";q=300;w=60',
            "RateLimit": '"token";r=299;t=60',
            "X-RateLimit-Limit": "300",
            "X-RateLimit-Remaining": "299",
            "X-RateLimit-Reset": "60",
        }
        clock.seconds += 20.5
        etag = {"If-None-Match": first.headers["ETag"]}
        answers = [
            await client.get("albums", headers=etag),
            await client("HEAD", "albums"),
            await client.get("albums?page=x"),
            await client.get("albums/99"),
            await client.post("albums", data=b"{"),
            await client.post("albums", {"name": "Lieder"}),
            await client.get(f"{INSIGHTS}/tracks/99"),
            await client.delete("fcm-tokens", {"token": "x"}),
            await client.get("openapi.json"),
        ]
        assert [answer.status for answer in answers] == [304, 200, 422, 404, 415, 422, 404, 200, 200]
        for path, answer in zip(("albums", "albums", "albums", "albums/99"), answers, strict=False):
            conforms(answer, "HEAD" if answer.status == 200 else "GET", path)
        assert [told(answer)["RateLimit"] for answer in answers] == [
            f'"token";r={remaining};t=40' for remaining in range(298, 289, -1)
        ]
        unknown = await anonymous.get("users/me")
        assert (unknown.status, left(unknown)) == (401, {"address": 59})
        conforms(unknown, "GET", "users/me")


@sqlite
async def test_several_limits_are_listed_and_the_tightest_has_own_headers(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock) as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        await client.get("albums")
        exported = await client.post(f"{INSIGHTS}/export/csv")
        assert exported.status == 200
        assert told(exported) == {
            "RateLimit-Policy": '"token";q=300;w=60, "exports";q=20;w=60',
            "RateLimit": '"token";r=298;t=60, "exports";r=19;t=60',
            "X-RateLimit-Limit": "20",
            "X-RateLimit-Remaining": "19",
            "X-RateLimit-Reset": "60",
        }
        cover = await client.post("cover-art/preview", {"template_id": 1, "title": "Rags", "artist": "Joplin"})
        assert left(cover) == {"token": 297, "cover_art": 29}
        assert left(await client.get(f"{INSIGHTS}/export/formats")) == {"token": 296}
        registered = await anonymous.post("auth/register", NEWCOMER)
        assert left(registered) == {"address": 59, "register": 9}
        assert told(registered)["RateLimit-Policy"] == '"address";q=60;w=60, "register";q=10;w=3600'


@sqlite
async def test_a_spent_limit_is_named_with_the_time_to_come_back(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, token="3/minute", address="1/second", register="1/hour") as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        for path in ("albums", f"{INSIGHTS}/tracks/1", "users/me"):
            assert (await client.get(path)).status in {200, 404}
            clock.seconds += 16
        refused = await client.get("albums")
        message = "The limit of 3 requests a minute for this token is reached. Try again in 12 seconds."
        assert (refused.status, refused.headers["Retry-After"]) == (429, "12")
        assert refused.json == {"status": "error", "message": message, "errors": {}}
        assert told(refused)["RateLimit"] == '"token";r=0;t=12'
        assert told(refused)["X-RateLimit-Reset"] == "12"
        insights = await client.get(f"{INSIGHTS}/tracks/1")
        assert (insights.status, insights.headers["Retry-After"]) == (429, "12")
        assert insights.json == {"success": False, "message": message, "error": "rate_limited"}
        conforms(refused, "GET", "albums")
        conforms(insights, "GET", f"{INSIGHTS}/tracks/1")
        clock.seconds += 12
        assert (await client.get("albums")).status == 200
        assert (await anonymous.post("auth/register", NEWCOMER)).status == 200
        clock.seconds += 1.5
        again = await anonymous.post("auth/register", NEWCOMER)
        assert again.headers["Retry-After"] == "3599"
        assert again.json["message"] == (
            "The limit of 1 registration an hour for your address is reached. Try again in 60 minutes."
        )
        assert (await anonymous.get("albums")).status == 200
        spent = await anonymous.get("albums")
        assert spent.json["message"] == (
            "The limit of 1 request a second without a valid token, for your address, is reached."
            " Try again in 1 second."
        )
    # Calls of one moment are logged in any order.
    assert [entry.status for entry in logged(store) if entry.retry_after == 12] == [429, 429]


async def test_a_request_with_a_valid_token_never_counts_against_its_address(store: Store, clock: StoppedClock) -> None:
    world = World(store, clock)
    async with limited(store, clock, address="4/hour") as anonymous:
        owner = anonymous.holding(world.tokens["owner"])
        for path in ("albums", "users/me", "openapi.json"):
            assert left(await owner.get(path)).keys() == {"token"}
        assert left(await owner.post("auth/register", {})).keys() == {"token", "register"}
        given = ["no token", "bad token", "expired token", "revoked token"]
        answers = [await anonymous.holding(world.tokens[who]).get("albums") for who in given]
        assert [(answer.status, left(answer)["address"]) for answer in answers] == [
            (200, 3),
            (401, 2),
            (401, 1),
            (401, 0),
        ]
        for path in ("albums", "users/me", "openapi.json"):
            assert (await anonymous.get(path)).status == 429
            assert (await anonymous.holding("nonsense").get(path)).status == 429
            assert (await owner.get(path)).status == 200
        assert (await owner.post("auth/register", NEWCOMER)).status == 200


async def test_tokens_have_a_limit_each(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, token="1/hour") as anonymous:
        for name in ("ann", "ben"):
            client = anonymous.holding(person(store, clock, f"{name}@label.test")[1])
            assert [(await client.get("albums")).status for _ in range(2)] == [200, 429]


@pytest.mark.on_both
async def test_a_refusal_by_an_endpoint_limit_does_not_count_for_the_token(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, exports="1/hour", cover_art="1/day") as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        kinds = ("csv", "json", "report", "pdf")
        answers = [await client.post(f"{INSIGHTS}/export/{kind}") for kind in kinds]
        assert [answer.status for answer in answers] == [200, 429, 429, 429]
        assert [left(answer) for answer in answers] == [{"token": 299, "exports": 0}] * 4
        assert "The limit of 1 export an hour for this token is reached." in answers[1].json["message"]
        cover = [await client.post("cover-art/preview", {}) for _ in range(2)]
        assert [answer.status for answer in cover] == [422, 429]
        assert (
            cover[1]
            .json["message"]
            .endswith("1 cover-art preview a day for this token is reached. Try again in 24 hours.")
        )
        assert left(await client.get("albums")) == {"token": 297}


async def test_requests_refused_before_the_limits_are_not_counted(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, address="1/hour") as anonymous:
        for method, path, status in (("GET", "nowhere", 404), ("PATCH", "albums", 405)):
            answer = await anonymous(method, path)
            assert (answer.status, told(answer)) == (status, {})
        assert (await anonymous.get("albums")).status == 200


@pytest.mark.parametrize(
    ("limits", "headers", "second"),
    [
        ({"local": False}, {}, 200),
        ({"local": False}, {"X-Forwarded-Proto": "https"}, 429),
        ({"local": True}, {}, 429),
        ({"enabled": False, "local": True}, {"X-Forwarded-Proto": "https"}, 200),
    ],
)
async def test_local_requests_are_exempt_unless_the_setting_includes_them(
    store: Store, clock: StoppedClock, limits: dict[str, bool], headers: dict[str, str], second: int
) -> None:
    async with limited(store, clock, address="1/hour", **limits) as anonymous:
        answers = [await anonymous.get("albums", headers=headers) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, second]
    assert bool(told(answers[0])) is (second == 429)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
async def test_an_address_of_ipv6_counts_with_its_network(
    store: Store, clock: StoppedClock, one: str, other: str, together: bool
) -> None:
    async with limited(store, clock, address="1/hour") as anonymous:
        statuses = []
        for address in (one, one, other):
            sent = {"X-Forwarded-Proto": "https", "X-Forwarded-For": address}
            statuses.append((await anonymous.get("albums", headers=sent)).status)
        assert statuses == [200, 429, 429 if together else 200]


@sqlite
async def test_a_wall_clock_that_jumps_changes_nothing(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, address="2/minute") as anonymous:
        assert left(await anonymous.get("albums")) == {"address": 1}
        clock.advance(DAY)
        assert told(await anonymous.get("albums"))["RateLimit"] == '"address";r=0;t=60'
        clock.advance(-2 * DAY)
        assert (await anonymous.get("albums")).headers["Retry-After"] == "60"


@pytest.mark.on_both
async def test_a_regenerated_token_keeps_its_count(store: Store, clock: StoppedClock) -> None:
    async with limited(store, clock, token="1/hour") as anonymous:
        _, token = person(store, clock, "ann@label.test")
        assert (await anonymous.holding(token).get("albums")).status == 200
        fresh = store.write(lambda: tokens.regenerate(1, now=clock.now())).result()[1]
        assert (await anonymous.holding(fresh).get("albums")).status == 429
        second = store.write(lambda: tokens.create(users.get(1), "second", now=clock.now())).result()[1]
        assert (await anonymous.holding(second).get("albums")).status == 200
