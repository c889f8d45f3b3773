"""Unknown parameters and fields: named in a header, or errors if the client prefers that (docs/api.md)."""

from typing import Any

import pytest

from musicsvc.config import Server, Settings
from musicsvc.server.request.parameters import preferences
from musicsvc.server.routes.route import INSIGHTS, V1, Route
from tests.rights.world import OWNER
from tests.server.request.test_first_steps import immediate_answers, warm
from tests.support.endpoint_cases import ValidRequest, each, is_error
from tests.support.raw_connection import connected, request
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client, StartServer
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = pytest.mark.only_on("sqlite")  # no query depends on it
STRICT = {"Prefer": "handling=strict"}
APPLIED = "handling=strict"
VARY = "Authorization, Accept-Encoding"
ORIGIN = "https://app.example"
QUERY, FIELD = "This parameter is unknown.", "This field is unknown."


def said(answer: Answer) -> tuple[int, str | None, str | None]:
    return answer.status, answer.headers.get("X-Ignored"), answer.headers.get("Preference-Applied")


def varies(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers.items() if name == "Vary"]


async def send(shared: Shared, route: Route, more: str, field: Any, headers: dict[str, str]) -> Answer:
    """Send a valid request of a new account, with a further parameter and field."""
    world = shared.world(())
    valid = ValidRequest(world, route)
    query = f"{valid.query}{'&' if valid.query else '?'}{more}" if more else valid.query
    body = valid.body if field is None else {**valid.body, **field}
    answer = await shared.client.holding(world.tokens[OWNER])(valid.method, valid.path + query, body, headers=headers)
    conforms(answer, valid.method, valid.path)
    return answer


@pytest.mark.slow
@each(lambda route: route.path.startswith(f"{V1}/"))
@on_shared_loop
async def test_every_endpoint_says_what_it_does_not_know(shared: Shared, route: Route) -> None:
    status = ValidRequest(shared.world(()), route).status
    field = None if route.body is None else {"un_known": [1, {"deep": 2}]}
    sent = "perpage=5", field
    named, accepted = await send(shared, route, *sent, {}), await send(shared, route, "", None, STRICT)
    refused = await send(shared, route, *sent, STRICT)
    wanted = ("query.perpage, body.un_known" if field else "query.perpage") if status < 400 else None
    # Only a missing object, or one of somebody else, is said before.
    errors = {"perpage": QUERY} | ({"un_known": FIELD} if field else {}) if status not in {403, 404} else {}
    assert is_error(refused, route, "validation_failed" if errors else "not_found")
    assert said(named) == (status, wanted, None), named.body
    assert said(accepted) == (status, None, APPLIED), accepted.body
    assert (refused.headers["Preference-Applied"], refused.json.get("errors", {})) == (APPLIED, errors), refused.body
    assert refused.status == (422 if errors else status)


@on_shared_loop
async def test_what_stands_in_a_response_is_ignored_in_a_body_and_named(member: Client) -> None:
    made = (await member.post("artists", {"name": "Ann Example"})).json["artist"]
    back = {**made, "name": "Ann", "bio": "…"}
    answer = await member("PATCH", f"artists/{made['id']}", back)
    assert answer.json["artist"]["name"] == "Ann"
    wanted = {"body.id", "body.verified", "body.model_type", "body.created_at", "body.albums_count", "body.bio"}
    assert wanted <= {*answer.headers["X-Ignored"].split(", ")}
    refused = await member("PATCH", f"artists/{made['id']}", {**back, "name": "", "image": 1}, headers=STRICT)
    assert {"id", "bio", "name", "image"} <= refused.json["errors"].keys()
    assert "X-Ignored" not in refused.headers
    assert (await member.get(f"artists/{made['id']}")).json["artist"]["name"] == "Ann"


@on_shared_loop
async def test_every_fault_is_told_at_once(member: Client) -> None:
    body = {"name": "", "artists": [2**53 - 1], "duration": "1", "bio": 1}
    refused = await member.post("tracks?sort=1&sort=2&Page=3", body, headers=STRICT)
    unknown = {"sort": QUERY, "Page": QUERY, "bio": FIELD}
    assert refused.status == 422
    assert {name: refused.json["errors"][name] for name in unknown} == unknown
    assert {"name", "artists.0", "duration"} <= refused.json["errors"].keys()
    both = await member.get("albums?page=0&page_size=3", headers=STRICT)
    assert both.json["errors"] == {"page_size": QUERY, "page": "Must be at least 1."}
    both = await member.get("tracks?q=%ff&external_id=a%ed%a0%80&page=0")
    no_utf8 = dict.fromkeys(("q", "external_id"), "Must be UTF-8, percent-encoded.")
    assert both.json["errors"] == {"page": "Must be at least 1."} | no_utf8
    both = await member.post("artists", {"name": "", "bio": "a\0b"})
    assert both.json["errors"] == {"name": "This field is required.", "body": "Must not contain NUL characters."}
    missing = await member.get("albums/999999?x=1", headers=STRICT)
    assert said(missing) == (404, None, APPLIED)


@on_shared_loop
async def test_other_names_and_misplaced_ones_are_known(member: Client) -> None:
    for path in ("albums?per_page=2&page=1", "tracks?perPage=2&genre=", "search?query=a", "search?q=a"):
        assert said(await member.get(path, headers=STRICT)) == (200, None, APPLIED), path
    artist = (await member.post("artists", {"name": "Ann Example"})).json["artist"]["id"]
    body = {"artist_id": artist, "timeframe": "7-days"}
    for headers in ({}, STRICT):
        refused = await member.post(f"{INSIGHTS}/export/csv?artist_id={artist}", body, headers=headers)
        assert refused.json["errors"]["artist_id"] == "Must be sent in the body, not in the query."
        refused = await member.get(f"{INSIGHTS}/artists/{artist}?timeframe=7-days", headers=headers)
        assert "Use `period`" in refused.json["errors"]["timeframe"], refused.body


@on_shared_loop
async def test_a_body_that_is_not_read_is_said(member: Client) -> None:
    body = {"name": "Ann"}
    assert said(await member("GET", "users/me", body)) == (200, "body", None)
    refused = await member("GET", "users/me", body, headers=STRICT)
    assert (refused.status, refused.json["errors"]) == (422, {"body": "This request takes no body."})
    assert said(await member("GET", "users/me", data=b"")) == (200, None, None)


@on_shared_loop
async def test_the_header_has_names_only_and_few_of_them(member: Client) -> None:
    odd = ["a b", "é", "x" * 65, "a,b", "a\r\nX-Other: 1", "", "🎵", "a;b", '"', "a:b"]
    fine = ["x" * 64, "with[]", "a.b-c_D9", *(f"n{number}" for number in range(12))]
    answer = await member.post("artists", {"name": "Ann Example", **dict.fromkeys(odd + fine, "value")})
    assert answer.headers["X-Ignored"] == ", ".join(f"body.{name}" for name in fine[:10])
    assert "X-Other" not in answer.headers
    answer = await member.get("genres?a%20b=1&fil%5Bter%5D=2&fil%5Bter%5D=3&=4&%ff=5")
    assert answer.headers["X-Ignored"] == "query.fil[ter]"
    assert said(await member.get("genres?a%20b=1")) == (200, None, None)
    refused = await member.post("artists", {"name": "Ann", **dict.fromkeys([*odd, "y" * 5000], 1)}, headers=STRICT)
    assert {*odd} - {""} <= refused.json["errors"].keys()
    assert f"{'y' * 100}…" in refused.json["errors"]


@on_shared_loop
async def test_names_that_are_no_text_are_errors_too(member: Client) -> None:
    lines = [f"Authorization: Bearer {member.token}", "Prefer: handling=strict"]
    for name in (b"\xff", b"%ff", b"\xed\xa0\x80", b"%ed%a0%80", b"%00", b""):
        async with connected(member.root) as wire:
            await wire.send(request("GET", "/api/v1/genres?NAME=1", *lines).replace(b"NAME", name))
            answer = await wire.answer()
        assert answer.status in {400, 422}, name
        assert answer.status == 400 or len(answer.json["errors"]) == 1


@on_shared_loop
async def test_many_unknown_fields_are_listed_up_to_a_bound(member: Client) -> None:
    body = {"name": "Ann Example", **{f"{number:040}": 0 for number in range(15_000)}}
    refused = await member.post("artists", body, headers=STRICT)
    assert (refused.status, len(refused.json["errors"])) == (422, 1000)
    assert len((await member.post("artists", body)).headers["X-Ignored"]) == 10 * 47 - 2


@pytest.mark.parametrize(
    ("lines", "strict"),
    [
        (("handling=strict",), True),
        (("HANDLING = Strict",), True),
        (('handling="strict"',), True),
        (("return=minimal; a=b, handling=strict; c=d",), True),
        (("respond-async", "wait=10", "handling=strict"), True),
        (('note="a, \\", handling=lenient", handling=strict',), True),
        ((",, ,handling=strict,",), True),
        (("handling=lenient",), False),
        (("handling=lenient, handling=strict",), False),
        (("handling=lenient", "handling=strict"), False),
        (('note="handling=strict"',), False),
        (("wait=10; handling=strict",), False),
        (("handling=stricter",), False),
        (("handling",), False),
        (("handling=",), False),
        (("",), False),
    ],
)
@on_shared_loop
async def test_the_preference_is_read_as_rfc_7240_says(member: Client, lines: tuple[str, ...], strict: bool) -> None:
    given = [f"Authorization: Bearer {member.token}", *(f"Prefer: {line}" for line in lines)]
    async with connected(member.root) as wire:
        await wire.send(request("GET", "/api/v1/genres?un=1", *given))
        answer = await wire.answer()
    assert said(answer) == ((422, None, APPLIED) if strict else (200, "query.un", None))


def test_preferences_have_values_or_none() -> None:
    text = 'Return=minimal, wait = "1\\"0, x" ; a="b,c" ,respond-async, return=representation, "odd", =1, open="a, b=1'
    found = preferences(["foo", text])
    assert (found["return"], found["wait"], found["respond-async"], found["foo"]) == ("minimal", '1"0, x', "", "")
    assert "b" not in found


@on_shared_loop
async def test_refusals_before_the_check_of_fields_name_nothing(member: Client) -> None:
    for client, path in ((member.holding("msvc_none"), "genres?un=1"), (member, "nowhere?un=1")):
        for headers in ({}, STRICT):
            answer = await client.get(path, headers=headers)
            assert said(answer) == (answer.status, None, None)
            assert answer.status in {401, 404}
    assert said(await member("PUT", "genres?un=1", headers=STRICT)) == (405, None, None)


@on_shared_loop
async def test_only_the_api_reads_the_preference(member: Client) -> None:
    for path in ("/healthz?un=1", "/docs?un=1", "/sign-in?un=1"):
        assert said(await member.get(path, headers=STRICT)) == (200, None, None)


@on_shared_loop
async def test_head_says_the_same(member: Client) -> None:
    assert said(await member("HEAD", "genres?un=1")) == (200, "query.un", None)
    assert said(await member("HEAD", "genres?un=1", headers=STRICT)) == (422, None, APPLIED)


@pytest.fixture
async def client(start_server: StartServer, world: dict[str, str]) -> Client:
    """Return a client of a server with responses in memory, which the code of another origin may read."""
    return (await start_server(Settings(server=Server(cors_origins=(ORIGIN,))))).holding(world["demo"])


async def test_responses_from_memory_say_what_belongs_to_the_request(client: Client) -> None:
    async with connected(client.root) as wire:

        def asking(query: str, *headers: str) -> bytes:
            return request("GET", f"/api/v1/genres{query}", f"Authorization: Bearer {client.token}", *headers)

        async def get(query: str, *headers: str) -> Answer:
            await wire.send(asking(query, *headers))
            return await wire.answer()

        kinds = (
            ("", (), (200, None, None), VARY),
            ("", ("Prefer: handling=strict",), (200, None, APPLIED), f"{VARY}, Prefer"),
            ("?perpage=5", (), (200, "query.perpage", None), f"{VARY}, Prefer"),
            ("?perpage=5", ("Prefer: handling=lenient",), (200, "query.perpage", None), f"{VARY}, Prefer"),
        )
        bodies = set()
        for query, headers, wanted, vary in kinds:
            answers = await warm(client, wire, asking(query, *headers))
            before = await immediate_answers(client)
            answers.append(last := await get(query, *headers))
            assert await immediate_answers(client) == before + 1
            assert [said(answer) for answer in answers] == [wanted] * len(answers)
            assert [varies(answer) for answer in answers] == [[f"Origin, {vary}"]] * len(answers)
            bodies.add(last.body)
            tag = f"If-None-Match: {last.headers['ETag']}"
            for _ in range(4):
                unchanged = await get(query, *headers, tag)
                assert said(unchanged) == (304, None, wanted[2])
                refused = await get("?perpage=5", "Prefer: handling=strict", tag)
                assert (*said(refused), refused.json["errors"]) == (422, None, APPLIED, {"perpage": QUERY})
        assert len(bodies) == 1


async def test_code_of_other_origins_may_prefer_and_read(client: Client) -> None:
    answer = await client.get("genres?un=1", headers={"Origin": ORIGIN})
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"X-Ignored", "Preference-Applied"} <= {*exposed}
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "prefer"}
    preflight = await client("OPTIONS", "genres", headers=asked)
    assert "Prefer" in preflight.headers["Access-Control-Allow-Headers"].split(", ")
