"""The OpenAPI document is valid, complete, and describes every answer."""

import json
import re
from typing import Any

import openapi_spec_validator
import pytest

from musicsvc.server.access.rate_limits import HEADERS
from musicsvc.server.openapi import document as openapi
from musicsvc.server.routes.route import JSON_MEDIA, Access, Route
from tests.server.openapi.conftest import SHOWN, each, operation_of
from tests.support.response_checks import conforms
from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ANYWHERE = {400, 403, 429, 500}


@pytest.mark.slow
def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    openapi_spec_validator.validate(document, cls=openapi_spec_validator.OpenAPIV31SpecValidator)
    assert document["servers"] == [{"url": "https://music.example.test"}]


async def test_the_served_document_is_the_one_of_its_root(anonymous: Client) -> None:
    answer = await anonymous.get("openapi.json")
    assert answer.status == 200
    assert answer.json == json.loads(json.dumps(openapi.document(anonymous.root)))
    conforms(answer, "GET", "openapi.json")


def test_every_endpoint_of_the_table_is_in_the_document_and_nothing_else(document: dict[str, Any]) -> None:
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == {(route.method, route.path) for route in SHOWN}
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    for methods in document["paths"].values():
        assert all(operation["summary"] for operation in methods.values())


@each(SHOWN)
def test_an_endpoint_has_every_status_that_it_can_give(document: dict[str, Any], route: Route) -> None:
    given = {int(status) for status in document["paths"][route.path][route.method.lower()]["responses"]}
    assert given >= ANYWHERE | {route.status}
    assert (304 in given) == (route.method == "GET")
    assert (401 in given) == (route.access is not Access.OPEN)
    assert (404 in given) == ("{" in route.path or 404 in route.docs.raises)
    assert (409 in given) == (409 in route.docs.raises or route.keyed)
    assert ({413, 415} <= given) == (route.body is not None)
    assert {405, 408, 431} & given == set()  # described once, for all
    assert 422 in given  # of what is unknown, if the client prefers that


def test_statuses_of_well_known_endpoints_stand_as_they_are_meant(document: dict[str, Any]) -> None:
    def statuses(method: str, path: str) -> str:
        return " ".join(operation_of(document, method, path)["responses"])

    assert statuses("GET", "/albums/{id}") == "200 304 400 401 403 404 422 429 500 503"
    assert statuses("POST", "/tracks") == "201 400 401 403 409 413 415 422 429 500 503"
    assert statuses("POST", "/auth/register") == "200 400 403 413 415 422 429 500 503"
    assert statuses("GET", "/openapi.json") == "200 304 400 403 422 429 500"


def test_who_may_call_stands_on_each_endpoint(document: dict[str, Any]) -> None:
    assert operation_of(document, "GET", "/albums")["security"] == [{}, {"bearer": []}]
    assert operation_of(document, "POST", "/albums")["security"] == [{"bearer": []}]
    assert operation_of(document, "POST", "/auth/register")["security"] == []
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_an_endpoint_has_one_tag_and_additions_are_marked(document: dict[str, Any]) -> None:
    for route in SHOWN:
        operation = document["paths"][route.path][route.method.lower()]
        assert len(operation["tags"]) == 1
        assert operation.get("x-addition", False) is route.docs.extension
    assert operation_of(document, "GET", "/genres")["x-addition"] is True
    declared = {tag["name"] for tag in document["tags"]}
    used = {tag for methods in document["paths"].values() for each in methods.values() for tag in each["tags"]}
    assert used == declared


@pytest.mark.parametrize(
    ("path", "names"), [("/albums", ["per_page", "perPage"]), ("/genres", ["perPage", "per_page"])]
)
def test_the_size_of_a_page_has_both_names_the_endpoints_own_first(
    document: dict[str, Any], path: str, names: list[str]
) -> None:
    parameters = operation_of(document, "GET", path)["parameters"]
    assert [each["name"] for each in parameters] == ["page", *names]
    assert all(each["schema"]["maximum"] == 100 for each in parameters[1:])
    assert [each.get("deprecated", False) for each in parameters] == [False, False, True]


def test_nothing_has_a_default_which_generated_clients_would_send(document: dict[str, Any]) -> None:
    paging = [
        parameter
        for methods in document["paths"].values()
        for operation in methods.values()
        for parameter in operation["parameters"]
        if parameter["name"] in {"page", "perPage", "per_page"}
    ]
    assert len(paging) > 30
    assert '"default":' not in json.dumps(document)
    assert {
        parameter["description"].rpartition(" Default: ")[2] for parameter in paging if "deprecated" not in parameter
    } == {"1.", "20."}


def test_every_json_answer_and_body_has_an_example(document: dict[str, Any]) -> None:
    contents = [
        (path, method, content[JSON_MEDIA])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for content in (
            operation.get("requestBody", {}).get("content", {}),
            *(promised.get("content", {}) for promised in operation["responses"].values()),
        )
        if JSON_MEDIA in content
    ]
    assert len(contents) > 100
    assert [each[:2] for each in contents if not each[2].keys() & {"example", "examples"}] == []


def test_files_are_binary_and_also_of_the_type_that_every_generator_knows(document: dict[str, Any]) -> None:
    found = [
        {media: content["schema"] for media, content in promised["content"].items()}
        for methods in document["paths"].values()
        for operation in methods.values()
        for promised in operation["responses"].values()
        if promised.get("content", {JSON_MEDIA: {}}).keys() != {JSON_MEDIA}
    ]
    binary = {"type": "string", "format": "binary"}
    workbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    types = ("text/csv", workbook, "application/pdf")
    assert found == [{"application/octet-stream": binary, media: binary} for media in types]


async def test_the_three_bodies_of_errors_are_those_of_the_service(document: dict[str, Any], anonymous: Client) -> None:
    shown = re.findall(r'`(\{"[^`]+\})`', document["info"]["description"])
    found = [(await anonymous.get(path)).json for path in ("/nothing", "tracks", "producer-intelligence/insights")]
    assert [json.loads(body).keys() for body in shown] == [body.keys() for body in found]
    unauthenticated = document["components"]["responses"]["Unauthorized"]
    assert json.loads(shown[1]) == found[1] == unauthenticated["content"][JSON_MEDIA]["example"]
    assert "the original specification fixes" in unauthenticated["description"]


def test_what_any_path_can_answer_is_described_once(document: dict[str, Any]) -> None:
    assert [
        text
        for text in ("405", "408", "431", "HEAD", "Token-Expires-At")
        if text not in document["info"]["description"]
    ] == []
    lengths = [
        len(json.dumps(operation["responses"]))
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    assert max(lengths) < 6_000


def test_ids_of_paths_bear_the_names_of_the_table_and_their_bounds(document: dict[str, Any]) -> None:
    (found,) = operation_of(document, "GET", "/tracks/{id}/fingerprint/status")["parameters"]
    assert (found["name"], found["in"], found["required"]) == ("id", "path", True)
    assert found["schema"] == {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}


def test_a_route_of_both_tiers_promises_either_shape(document: dict[str, Any]) -> None:
    content = operation_of(document, "GET", "/tracks/{id}")["responses"]["200"]["content"][JSON_MEDIA]
    assert [schema["$ref"].rpartition("/")[2] for schema in content["schema"]["anyOf"]] == [
        "OneTrack",
        "OneTrackPublic",
    ]


def test_every_answer_may_tell_of_limits_and_the_endpoints_that_have_one_of_their_own_say_so(
    document: dict[str, Any],
) -> None:
    headers = document["components"]["headers"]
    assert {name for name, header in headers.items() if not header["required"]} == {
        *HEADERS,
        *("Link", "Deprecation", "Sunset"),
        "Token-Expires-At",
        "X-Ignored",
        "Preference-Applied",
        "Idempotency-Replayed",
    }
    for route in SHOWN:
        operation = document["paths"][route.path][route.method.lower()]
        assert route.limit is None or f"the rate limit `{route.limit.value}`" in operation["description"]
    for name in ("RateLimited", "InsightsRateLimited"):
        assert {*HEADERS, "Retry-After"} == document["components"]["responses"][name]["headers"].keys()
    for written in ("300/minute", "60/minute", "10/hour", "20/minute", "30/minute"):
        assert written in document["info"]["description"]
