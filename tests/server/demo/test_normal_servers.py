"""The headers and endpoints of a demo exist in no other server."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import openapi_spec_validator
import pytest

from musicsvc.server.demo import faults
from musicsvc.server.openapi import document as openapi
from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.table import ROUTES
from tests.support.demo import Demo
from tests.support.serving import Answer, Client

OWN = [route for route in DEMO_ROUTES if route not in ROUTES]
FAULTS = [*faults.REFUSALS, *faults.LISTED.removeprefix(", ".join(faults.REFUSALS)).split(", ")[1:], "nonsense"]
CHANGING = {"x-request-id", "date"}


def steady(answer: Answer) -> tuple[int, Mapping[str, str], bytes]:
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in CHANGING}
    return answer.status, kept, answer.body


async def test_the_headers_that_inject_faults_change_nothing(anonymous: Client, world: dict[str, str]) -> None:
    assert {"503", "cut", "slow=2s", "duplicate"} <= {*FAULTS}
    client = anonymous.holding(world["demo"])
    for path in ("albums", "producer-intelligence/insights/tracks/1", "nothing"):
        expected = steady(await client.get(path))
        for fault in FAULTS:
            assert steady(await client.get(path, headers={"X-Demo-Fault": fault})) == expected
        assert steady(await client.get(path, headers={"Prefer": "code=503"})) == expected
    before = (await client.get("artists?perPage=1")).json["artists"]["total"]
    for fault in ("duplicate", "lost-response"):
        made = await client.post("artists", {"name": "Once"}, headers={"X-Demo-Fault": fault})
        assert (made.status, "X-Demo-Injected" in made.headers) == (201, False)
    assert (await client.get("artists?perPage=1")).json["artists"]["total"] == before + 2


@pytest.mark.slow
@pytest.mark.parametrize("route", OWN, ids=lambda route: f"{route.method} {route.path}")
async def test_the_paths_of_the_demo_are_unknown(anonymous: Client, world: dict[str, str], route: Any) -> None:
    client = anonymous.holding(world["demo"])
    path = route.path.replace("{", "").replace("}", "")
    unknown = steady(await client(route.method, "/nothing/at/all", {} if route.body else None))
    assert unknown[0] == 404
    assert steady(await client(route.method, path, {} if route.body else None)) == unknown


@pytest.mark.slow
def test_the_document_of_a_demo_is_that_of_other_servers_and_its_own_endpoints(demo: Demo) -> None:
    found, other = demo.get("openapi.json").json, json.loads(json.dumps(openapi.document(demo.root)))
    openapi_spec_validator.validate(found, cls=openapi_spec_validator.OpenAPIV31SpecValidator)
    own = {path: operations for path, operations in found["paths"].items() if path not in other["paths"]}
    assert own.keys() == {route.path for route in OWN}
    assert all(operation["x-demo"] for operations in own.values() for operation in operations.values())
    assert {path: found["paths"][path] for path in other["paths"]} == other["paths"]
    schemas = {name: found["components"]["schemas"][name] for name in other["components"]["schemas"]}
    assert found["components"] | {"schemas": schemas} == other["components"]
    assert "x-demo" not in json.dumps(other)
    assert "X-Demo" not in json.dumps(other)
    assert "`X-Demo-Fault`" in found["info"]["description"]


@pytest.mark.slow
def test_the_responses_of_the_own_endpoints_are_those_of_the_document(own_demo: Demo) -> None:
    document = openapi.document(own_demo.root, demo=True)
    for route in sorted(OWN, key=lambda route: route.method != "POST"):
        operation = document["paths"][route.path][route.method.lower()]
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        response = own_demo.ask(route.method, route.path.format_map(route.docs.example), content.get("example"))
        assert response.status in {route.status, 404}
        if response.status == route.status:
            schema = operation["responses"][str(route.status)]["content"]["application/json"]["schema"]
            check(response.json, schema, document)


def check(value: Any, schema: Any, document: Any) -> None:
    whole = {**schema, "components": document["components"]}
    jsonschema_rs.validator_for(whole).validate(value)
