"""Every field of every body, at its bounds: accepted values, and refused ones with the field's name."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.openapi import document as openapi
from musicsvc.server.routes.route import JSON_MEDIA, V1, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import MAX_ID
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track
from tests.rights.table import endpoint
from tests.rights.world import OWNER, World
from tests.support.endpoint_cases import ValidRequest, is_error
from tests.support.field_rules import FIELDS, Rule
from tests.support.serving import Answer, Client

# Forms have texts, and tests of their own, and so have listens.
API = [route for route in ROUTES if route.family not in {Family.PAGE, Family.LISTENS, Family.TOOLS}]
WITH_BODY = {endpoint(route): route for route in API if route.body is not None}
ABSENT = object()
BOUNDS = {"maxLength": 1, "minLength": -1, "maxItems": 1, "minItems": -1, "maximum": 1, "minimum": -1}
# Bodies with the nested fields that the rules name.
WHOLE: dict[str, Any] = {
    f"PUT {V1}/notifications/{{user}}/subscriptions": {"selections": [{"notif_id": "a", "channels": {}}]}
}
# Bodies with a period, beside which dates are refused; test_periods.py sends dates that are accepted.
WHOLE |= {place: {"period": "7-days"} for place, rules in FIELDS.items() if rules.keys() >= {"from", "period"}}


def test_every_field_has_a_rule() -> None:
    assert set(FIELDS) == set(WITH_BODY)
    for place, route in WITH_BODY.items():
        assert route.body is not None
        fields = {field.alias or name for name, field in route.body.model_fields.items()}
        assert {path for path in FIELDS[place] if "." not in path} == fields, place


def test_the_document_has_the_bounds_of_the_rules() -> None:
    document = openapi.document()
    wrong = []
    for place, rules in FIELDS.items():
        method, path = place.split()
        body = document["paths"][path][method.lower()]["requestBody"]["content"][JSON_MEDIA]["schema"]
        for name, rule in rules.items():
            schema = part_of(body, name, document["components"]["schemas"])
            for keyword, beyond in BOUNDS.items():
                bound = schema.get(keyword, 0 if keyword.startswith("min") else MAX_ID)
                if bound in {0, MAX_ID} or (keyword, schema.get("format")) == ("minLength", "email"):
                    continue  # no bound; whether an object has the highest id; another rule is stricter
                taken, refused = ({size(value, keyword) for value in values} for values in (rule.taken, rule.refused))
                if not taken >= ({bound} if rule.taken else set()) or bound + beyond not in refused:
                    wrong.append((place, name, keyword, bound))
    assert wrong == []


def part_of(schema: Any, name: str, components: Mapping[str, Any]) -> Any:
    """Return the schema of a field, such as `plays.0.listener`."""
    for each in [*name.split("."), None]:
        schema = next(kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null")
        schema = components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if each is not None:
            schema = schema["items"] if each.isdigit() else schema["properties"][each]
    return schema


def size(value: Any, keyword: str) -> Any:
    """Return what a bound limits: the length of a trimmed string, the number of items, or the number itself."""
    match value:
        case str() if keyword.endswith("Length"):
            return len(value.strip())
        case list() if keyword.endswith("Items"):
            return len(value)
        case int() | float() if not isinstance(value, bool):
            return value
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "within", [pytest.param(True, marks=pytest.mark.on_both, id="taken"), pytest.param(False, id="refused")]
)
async def test_every_field_is_taken_within_its_bounds_and_refused_beyond_them(
    anonymous: Client, store: Store, clock: MovableClock, *, within: bool
) -> None:
    world = fill(store, clock)
    client = anonymous.holding(world.tokens[OWNER])
    wrong, asked = [], 0
    for place, route in WITH_BODY.items():
        valid = ValidRequest(world, route)
        base = WHOLE.get(place, valid.body)
        for path, value in cases(FIELDS[place], within=within):
            asked += 1
            if route.private and "pending-listens" in route.path:  # what is accepted takes the listens away
                valid = ValidRequest(world, route)
            unique = {"email": f"new{asked}@label.test"} if place.endswith("/register") else {}
            answer = await client(route.method, valid.path, with_value(base | unique, path, value))
            expected = answer.status in {route.status, 409} if within else refuses(answer, route, path)
            if not expected:
                wrong.append((place, path, repr(value)[:60], answer.status, answer.body[:200]))
        valid = ValidRequest(world, route)
        answer = await client(route.method, valid.path, [base])
        assert (answer.status, list(answer.json["errors"])) == (422, ["body"]), place
    assert wrong == []


def refuses(answer: Answer, route: Route, path: str) -> bool:
    """Return whether the answer refuses this field and no other."""
    if answer.status != 422 or not is_error(answer, route, "validation_failed"):
        return False
    fields = list(answer.json["errors"])
    return bool(fields) and all(f"{field}.".startswith(f"{path}.") for field in fields)


def fill(store: Store, clock: MovableClock) -> World:
    """Create accounts 1 to 10 beside the caller, artists 1 to 51 and an album of the caller, tracks 1 to 501."""

    def others() -> None:
        for number in range(10):
            users.create(f"other{number}@label.test", now=clock.now())

    def catalog() -> None:
        made = {"created_at": clock.now()}
        manager = world.ids[OWNER]
        Artist.insert_many([{"name": "Artist", "manager": manager} | made for _ in range(51)]).execute()
        Track.insert_many([{"name": "Track", "duration": 1} | made for _ in range(501)]).execute()
        AlbumArtist.create(album=Album.create(name="Album", **made), artist=1, position=0)

    store.write(others).result()
    world = World(store, clock, ())
    world.do(catalog)
    return world


def cases(rules: Mapping[str, Rule], *, within: bool) -> Iterator[tuple[str, Any]]:
    """Yield the path of each field, with a value for it that is accepted, or with one that is not."""
    for path, rule in rules.items():
        yield from ((path, value) for value in (rule.taken if within else rule.refused))
        if rule.required is not within:
            yield from ((path, value) for value in (None, ABSENT) if value is ABSENT or None not in rule.refused)


def with_value(base: dict[str, Any], path: str, value: Any) -> Any:
    """Return the body with this value at the path, such as `plays.0.listener`."""
    body = json.loads(json.dumps(base))
    *above, last = path.split(".")
    place = body
    for each in above:
        place = place[int(each)] if isinstance(place, list) else place[each]
    place.pop(last, None)
    if value is not ABSENT:
        place[last] = value
    return body
