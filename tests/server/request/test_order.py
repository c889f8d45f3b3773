"""The order of checks, tested for every endpoint of the table (docs/api.md, Order of checks)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from musicsvc.clock import MovableClock
from musicsvc.config import Access as AccessSettings
from musicsvc.config import Limits, Metrics, Server, Settings
from musicsvc.server.routes.route import ACCESS_REQUESTS, Access, Family, RateLimit, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import api_access, users
from musicsvc.store.engine.store import Store
from tests.rights.table import RIGHTS, key
from tests.rights.world import OWNER, World
from tests.support import databases
from tests.support.endpoint_cases import UNAUTHENTICATED, ValidRequest, each, is_error, takes_id
from tests.support.raw_connection import connected, request
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client, running
from tests.support.shared_server import Shared, on_shared_loop, shared_server

sqlite = pytest.mark.only_on("sqlite")  # no query depends on what these test; the tests of each fault run on both
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
CONTACT = "api@music.test"
HTTPS = "X-Forwarded-Proto: https"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def world(shared: Shared) -> World:
    """Callers of tests that change no account and no token."""
    return shared.world(("bad token", "expired token", "revoked token"))


def is_unauthenticated(answer: Answer, route: Route, reason: str | None) -> bool:
    challenge = f'Bearer error="invalid_token", error_description="{reason}"' if reason else "Bearer"
    body = {"success": False, "message": "Unauthenticated.", "error": "unauthorized"}
    wanted = body if route.family is Family.INSIGHTS else UNAUTHENTICATED
    return (answer.status, answer.headers["WWW-Authenticate"], answer.json) == (401, challenge, wanted)


@sqlite
@each(lambda route: route.access is not Access.OPEN)
@on_shared_loop
async def test_a_token_that_is_none_is_401_everywhere(shared: Shared, world: World, route: Route) -> None:
    valid, token = ValidRequest(world, route), world.tokens[OWNER]
    none = ["", "Bearer", "Bearer ", "nonsense", str(token), f"Basic {token}", f"Token {token}", f"Bearer: {token}"]
    none += [f"Bearer\t{token}", f"Bearer{token}", "Basic YTpi", "Negotiate", f"Digest Bearer {token}"]
    given = ["Bearer x", f"Bearer {token}x", f"Bearer x{token}", f"Bearer {str(token)[:-1]}", f"Bearer {token} {token}"]
    given += [f'Bearer "{token}"', f"Bearer {token},Bearer {token}", "Bearer \udcff"]
    async with connected(shared.client.root) as wire:
        for value in none + given:
            await wire.send(request(valid.method, valid.path, f"Authorization: {value}"))
            assert is_unauthenticated(await wire.answer(), route, "unknown" if value in given else None), value
        for who, reason in (("bad token", "unknown"), ("expired token", "expired"), ("revoked token", "revoked")):
            await wire.send(request(valid.method, valid.path, f"Authorization: Bearer {world.tokens[who]}"))
            assert is_unauthenticated(await wire.answer(), route, reason), who
        twice = [f"Authorization: Bearer {token}"] * 2
        await wire.send(request(valid.method, valid.path, *twice))
        assert is_unauthenticated(await wire.answer(), route, "unknown")
        if route.access is not Access.PUBLIC:
            await wire.send(request(valid.method, valid.path))
            assert is_unauthenticated(await wire.answer(), route, None)


@sqlite
@each(lambda route: route.access in {Access.PUBLIC, Access.TOKEN})
@on_shared_loop
async def test_an_account_without_access_is_told_where_to_ask(shared_hosted: Shared, route: Route) -> None:
    world = shared_hosted.world(("without access", "suspended"))
    path = ValidRequest(world, route).path
    ways = f"no API access. Ask for it at {CONTACT} or with POST {ACCESS_REQUESTS}."
    for who, words in (("without access", ways), ("suspended", "suspended")):
        client = shared_hosted.client.holding(world.tokens[who])
        answer = await client(route.method, path, headers={"X-Forwarded-Proto": "https"})
        assert answer.status == 403
        assert is_error(answer, route, "forbidden")
        assert words in answer.json["message"]


@pytest.mark.slow
@sqlite
@each()
@on_shared_loop
async def test_other_methods_are_405_and_a_slash_at_the_end_is_404(shared: Shared, world: World, route: Route) -> None:
    valid = ValidRequest(world, route)
    allowed = {other.method for other in ROUTES if other.path == route.path}
    allowed |= {"HEAD"} if "GET" in allowed else set()
    for method in METHODS - allowed:
        answer = await shared.client(method, valid.path)
        assert (answer.status, answer.headers["Allow"]) == (405, ", ".join(sorted(allowed)))
        assert method == "HEAD" or is_error(answer, route, "method_not_allowed")
    for method in METHODS - {"HEAD"}:
        answer = await shared.client(method, f"{valid.path}/")
        assert answer.status == 404, method
        assert is_error(answer, route, "not_found")


@pytest.mark.slow
@sqlite
@each(lambda route: route.method == "GET" and route.path != "/metrics")  # never the same twice
@on_shared_loop
async def test_head_is_get_without_its_body(shared: Shared, world: World, route: Route) -> None:
    valid = ValidRequest(world, route)
    for who in (OWNER, "no token", "bad token"):
        holder = shared.client.holding(world.tokens[who])
        got = await holder.get(valid.path + valid.query)
        head = await holder("HEAD", valid.path + valid.query)
        assert (head.status, head.body) == (got.status, b"")
        if lasting(head) != lasting(got):  # the last use of a token may have been written between the two
            got = await holder.get(valid.path + valid.query)
        assert lasting(head) == lasting(got)


def lasting(answer: Answer) -> dict[str, str]:
    """Return the headers that do not differ from one answer to the next."""
    return {name: value for name, value in answer.headers.items() if name.lower() not in {"date", "x-request-id"}}


CLIMBERS = ("without access", "stranger")  # other callers in the tests of the order
CODES = {403: "forbidden", 404: "not_found", 405: "method_not_allowed", 422: "validation_failed"}


@each()
@on_shared_loop
async def test_each_fault_is_told_before_the_next(shared_hosted: Shared, route: Route) -> None:
    """Start with a request that has every fault and correct one after another; the answer names the next one."""
    for name, raw, status in ladder(shared_hosted.world(CLIMBERS), route):
        answer = await answer_to(shared_hosted.client.root, raw)
        assert answer.status == status, (name, answer.body)
        assert status not in CODES or is_error(answer, route, CODES[status]), (name, answer.body)
        if not (route.docs.undocumented or name in {"framing", "https"}):  # these are found before the path is
            conforms(answer, *raw.decode().split()[:2])


async def answer_to(root: str, raw: bytes) -> Answer:
    """Send a request on a connection of its own."""
    async with connected(root) as wire:
        await wire.send(raw)
        return await asyncio.wait_for(wire.answer(), 30)


BEFORE_LIMITS = {"framing", "https", "path", "method"}
OF_ADDRESS = {"token", "access"}  # checks of requests that count for their address


@pytest.mark.slow
@sqlite
@each(lambda route: route.family is not Family.PLAIN)
@on_shared_loop
async def test_a_spent_limit_is_told_in_its_place(shared_spent: Shared, route: Route) -> None:
    """The same with all rate limits exceeded: 429 replaces 401, 403 without access, and everything after."""
    world = shared_spent.world(CLIMBERS)
    holders = [shared_spent.client.holding(world.tokens[who]) for who in (OWNER, "stranger")]
    for holder in holders:
        assert (await holder.get("albums", headers={"X-Forwarded-Proto": "https"})).status == 200
    bare = request(route.method, ValidRequest(world, route).path, HTTPS)
    rungs = [*ladder(world, route), ("token", bare, 401)]
    # At once, because the first refusal of each token and address takes a fifth of a second.
    answers = await asyncio.gather(*(answer_to(shared_spent.client.root, raw) for _, raw, _ in rungs))
    for (name, _, status), answer in zip(rungs, answers, strict=True):
        assert answer.status == (status if name in BEFORE_LIMITS else 429), (name, answer.body)
        if answer.status == 429:
            assert is_error(answer, route, "rate_limited")
            whose = "your address" if name in OF_ADDRESS else "this token"
            assert re.match(f"The limit of 1 request an hour.* for {whose},? is reached. ", answer.json["message"])
            assert 3500 < int(answer.headers["Retry-After"]) <= 3600
    world.do(lambda: api_access.revoke(users.get(world.ids[OWNER]), now=shared_spent.clock.now()))
    answer = await holders[0](route.method, ValidRequest(world, route).path, headers={"X-Forwarded-Proto": "https"})
    assert (answer.status, "for your address" in answer.json["message"]) == (429, True)


@sqlite
@each(lambda route: route.limit)
async def test_a_limit_beside_the_tokens_has_the_same_place(store: Store, clock: MovableClock, route: Route) -> None:
    world = World(store, clock, CLIMBERS)
    async with hosted(store, clock, **{limit.value: "1/hour" for limit in RateLimit}) as client:
        valid = ValidRequest(world, route)
        assert route.limit is not None
        for status in (valid.status, 429):
            answer = await client.holding(world.tokens[OWNER])(
                route.method, valid.path, valid.body, headers={"X-Forwarded-Proto": "https"}
            )
            assert answer.status == status, answer.body
        for name, raw, status in ladder(world, route):
            answer = await answer_to(client.root, raw)
            assert answer.status == (status if name in BEFORE_LIMITS | OF_ADDRESS else 429), (name, answer.body)
            assert answer.status != 429 or f'"{route.limit.value}";r=0' in answer.headers["RateLimit"]


@sqlite
@each(lambda route: route.family is Family.PLAIN)
async def test_what_is_no_api_has_no_limit(store: Store, clock: MovableClock, route: Route) -> None:
    valid = ValidRequest(World(store, clock, ()), route)
    async with hosted(store, clock, address="1/hour") as client:
        for _ in range(3):
            answer = await client(route.method, valid.path, headers={"X-Forwarded-Proto": "https"})
            assert answer.status == valid.status
            assert "RateLimit" not in answer.headers


@asynccontextmanager
async def hosted(store: Store, clock: MovableClock, **limits: str) -> AsyncIterator[Client]:
    """Run a server with the settings of a hosted one."""
    async with running(store, clock, hosted_settings(**limits)) as client:
        yield client


def hosted_settings(**limits: str) -> Settings:
    server, metrics = Server(public_url="https://music.example.test"), Metrics(allow=("127.0.0.1",))
    contact = AccessSettings(contact_email=CONTACT)
    return Settings(server=server, metrics=metrics, access=contact, limits=Limits.model_validate(limits))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_hosted(
    template: databases.Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shared]:
    """Run a hosted server for all tests that use it; they share the rate limit of the address."""
    settings = hosted_settings(address="1000000/hour", register="1000000/hour")
    async with shared_server(template, tmp_path_factory.mktemp("hosted"), settings) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_spent(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    """Run a hosted server with a limit of one request for each token and address; this address has sent its request."""
    settings = hosted_settings(token="1/hour", address="1/hour")
    async with shared_server(template, tmp_path_factory.mktemp("spent"), settings) as server:
        assert (await server.client.get("albums", headers={"X-Forwarded-Proto": "https"})).status == 200
        yield server


def ladder(world: World, route: Route) -> Iterator[tuple[str, bytes, int]]:
    """Yield each fault in the order of checks: its name, a request with it and all later faults, and the status."""
    valid = ValidRequest(world, route)
    missing = valid.about(2**53 - 1) if takes_id(route) else valid.path
    worst = f"?{twice(route)}"
    bad = ["Authorization: Bearer nonsense", "Content-Type: text/plain", "Content-Length: 9999999"]
    if not route.plain_http:
        yield "framing", request("OPTIONS", f"{missing}/{worst}", "Content-Length: x", *bad[:2]), 400
        yield "https", request("OPTIONS", f"{missing}/{worst}", *bad), 403
    yield "path", request("OPTIONS", f"{missing}/{worst}", HTTPS, *bad), 404
    yield "method", request("OPTIONS", missing + worst, HTTPS, *bad), 405
    if route.access is not Access.OPEN:
        yield "token", request(route.method, missing + worst, HTTPS, *bad), 401
    if route.access in {Access.PUBLIC, Access.TOKEN}:
        refused = f"Authorization: Bearer {world.tokens['without access']}"
        yield "access", request(route.method, missing + worst, HTTPS, refused, *bad[1:]), 403
    sound = [HTTPS, f"Authorization: Bearer {world.tokens[OWNER]}"]
    if route.body is not None:
        yield "media type", request(route.method, missing + worst, *sound, *bad[1:]), 415
        yield "size", request(route.method, missing + worst, *sound, JSON, bad[2]), 413
        yield "JSON", request(route.method, missing + worst, *sound, JSON, body=b'{"'), 400
    yield from below_the_body(world, valid, worst, sound)


def below_the_body(world: World, valid: ValidRequest, worst: str, sound: list[str]) -> Iterator[tuple[str, bytes, int]]:
    """Yield the faults that are found once the body is read."""
    route = valid.route
    faulty = json.dumps(all_faulty(route)).encode() if route.body is not None else b""
    kind = [JSON] if route.body is not None else []
    if takes_id(route):
        missing = valid.about(2**53 - 1) + worst
        yield "subject", request(route.method, missing, *sound, *kind, body=faulty), 404
    if strangers := [right for right in RIGHTS[key(route)].values() if right.stranger]:
        other = ValidRequest(world, route, strangers[0], who="stranger")
        theirs = [HTTPS, f"Authorization: Bearer {world.tokens['stranger']}", *kind]
        refusal = strangers[0].stranger
        told = 422 if route.find is None else refusal  # objects in the body are looked up last
        yield "right", request(route.method, other.path + worst, *theirs, body=faulty), told
        yield "right alone", request(route.method, other.path + other.query, *theirs, body=json_of(other)), refusal
    if faulty or twice(route):
        yield "fields", request(route.method, valid.path + worst, *sound, *kind, body=faulty), 422
    whole = request(route.method, valid.path + valid.query, *sound, *kind, body=json_of(valid))
    yield "nothing", whole, valid.status
    if 409 in route.docs.raises and route.body is not None:
        yield "conflict", whole, 409


def json_of(valid: ValidRequest) -> bytes:
    return b"" if valid.body is None else json.dumps(valid.body).encode()


def all_faulty(route: Route) -> dict[str, Any]:
    """Return a body in which every field has a wrong type."""
    fields = route.body.model_fields if route.body is not None else {}
    return {field.alias or name: {"wrong": True} for name, field in fields.items()}


def twice(route: Route) -> str:
    """Return a query with every parameter twice."""
    if route.query is None:
        return ""
    names = [field.alias or name for name, field in route.query.model_fields.items()]
    return "&".join(f"{name}=1&{name}=1" for name in names)
