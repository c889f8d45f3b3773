"""The examples of the OpenAPI document are valid, and can be sent as they are."""

from typing import Any

import pytest

from musicsvc.server.openapi.models import example
from musicsvc.server.routes.route import ACCESS_REQUESTS, JSON_MEDIA, V1, Access, Route
from musicsvc.store.accounts import api_access, passwords, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PendingListen, TrackArtist
from tests.server.openapi.conftest import SHOWN, each
from tests.support import response_checks
from tests.support.response_checks import conforms
from tests.support.serving import Answer, Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

DEMO = "demo@musicsvc.test"


@each([route for route in SHOWN if route.answer is not None])
def test_the_example_of_an_answer_is_such_an_answer(document: dict[str, Any], route: Route) -> None:
    promised = document["paths"][route.path][route.method.lower()]["responses"][str(route.status)]
    content = promised["content"][JSON_MEDIA]
    examples = (
        [part["value"] for part in content["examples"].values()] if "examples" in content else [content["example"]]
    )
    for value in examples:
        response_checks.check(value, content["schema"], f"the example of {route.method} {route.path}")


def test_an_example_is_that_of_the_field_or_the_simplest_value_of_its_type() -> None:
    definitions = {"Named": {"properties": {"name": {"type": "string"}, "done": {"type": "boolean"}}}}
    named = {"$ref": "#/components/schemas/Named"}
    for schema, expected in (
        ({"type": "integer", "examples": [7, 8]}, 7),
        ({"const": "success"}, "success"),
        ({"enum": ["day", "week"], "type": "string"}, "day"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"type": "number", "minimum": 0}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 6}, "text……"),
        ({"type": "boolean"}, False),
        ({"type": "array", "items": named}, [{"name": "name", "done": False}]),
        ({}, {}),
    ):
        found = example(schema, definitions)
        assert (type(found), found) == (type(expected), expected)


def test_the_examples_of_errors_are_such_errors(document: dict[str, Any]) -> None:
    for name, promised in document["components"]["responses"].items():
        for content in promised.get("content", {}).values():
            response_checks.check(content["example"], content["schema"], f"the example of {name}")


async def test_the_examples_of_reading_can_be_sent_as_they_stand(
    anonymous: Client, store: Store, world: dict[str, str], document: dict[str, Any]
) -> None:
    without_access(store)
    store.write(lambda: api_access.request(DEMO, "A page", "9 a day", "Own", now=1)).result()
    store.write(lambda: api_access.approve(DEMO, now=1)).result()
    for route in SHOWN:
        if route.method != "GET":
            continue
        answer = await send_example(caller_of(route, anonymous, world), document, route)
        assert answer.status == 200, f"{route.path}: {answer.body!r}"
        conforms(answer, "GET", route.path, public=False)
        if route.access is Access.PUBLIC:
            conforms(await send_example(anonymous, document, route), "GET", route.path, public=True)


@pytest.mark.slow
@each([route for route in SHOWN if route.method != "GET"])
async def test_the_example_of_a_change_can_be_sent_as_it_stands(
    anonymous: Client, store: Store, world: dict[str, str], document: dict[str, Any], route: Route
) -> None:
    if route.password is not None:
        hashed = passwords.hash_password("three romances for violin")
        store.write(lambda: users.set_password(users.by_email(DEMO), hashed, now=1)).result()
    if route.path == ACCESS_REQUESTS:
        without_access(store)
    if "/pending-listens/" in route.path:
        heard = {"names": 1, "artist_key": 2, "artist": "Nobody", "title": "Nothing", "received_at": 3}
        user = store.read(lambda: users.by_email(DEMO).id).result()
        store.write(lambda: PendingListen.create(user=user, slot=4, played_at=120, **heard)).result()
    if (route.method, route.path) == ("DELETE", f"{V1}/artists/{{id}}"):
        store.write(
            lambda: TrackArtist.delete().where(TrackArtist.artist == route.docs.example["id"]).execute()
        ).result()
    answer = await send_example(caller_of(route, anonymous, world), document, route)
    assert answer.status == route.status, answer.body
    conforms(answer, route.method, route.path)


def without_access(store: Store) -> None:
    store.write(lambda: api_access.revoke(users.by_email(DEMO), now=1)).result()


def test_every_text_has_an_example(document: dict[str, Any]) -> None:
    given_whole = {"Error", "InsightsError"}  # by the examples of answers
    lacking = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, part in schema.get("properties", {}).items()
        if name not in given_whole and is_bare_text(part)
    ]
    assert lacking == [], "give them Field(examples=[…])"


def is_bare_text(schema: dict[str, Any]) -> bool:
    if {"examples", "const", "enum", "default", "$ref"} & schema.keys():
        return False
    if "anyOf" in schema or "items" in schema:
        return is_bare_text(schema["anyOf"][0] if "anyOf" in schema else schema["items"])
    return bool(schema.get("type") == "string")


def caller_of(route: Route, anonymous: Client, world: dict[str, str]) -> Client:
    return anonymous.holding(None if route.access is Access.OPEN else world["demo"])


def in_query(example: Any) -> str:
    return ",".join(str(part) for part in example) if isinstance(example, list) else str(example)


async def send_example(client: Client, document: dict[str, Any], route: Route) -> Answer:
    """Send the example that the document has for the endpoint."""
    operation = document["paths"][route.path][route.method.lower()]
    given = {
        place: {
            each["name"]: in_query(each["example"])
            for each in operation["parameters"]
            if "example" in each and each["in"] == place
        }
        for place in ("path", "query")
    }
    path = route.path.format(**given["path"])
    query = "&".join(f"{name}={value}" for name, value in given["query"].items())
    body = operation["requestBody"]["content"][JSON_MEDIA]["example"] if "requestBody" in operation else None
    return await client(route.method, f"{path}?{query}" if query else path, body)
