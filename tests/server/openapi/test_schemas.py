"""The schemas of the OpenAPI document tell a client what an answer contains."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from musicsvc.server.openapi import document as openapi
from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.route import JSON_MEDIA
from musicsvc.server.schemas.reading import check
from tests.conftest import NOW

KEYWORDS = {
    *("$ref", "additionalProperties", "anyOf", "const", "description", "enum", "examples", "format", "items"),
    *("maximum", "maxItems", "maxLength", "minimum", "minItems", "minLength", "pattern", "properties", "required"),
    *("type", "uniqueItems"),
}


def test_every_answer_in_json_but_the_document_itself_has_a_schema_that_names_its_fields() -> None:
    document = openapi.document()
    components = document["components"]["schemas"]
    nameless = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            (success,) = (each for status, each in operation["responses"].items() if status.startswith("2"))
            schema = success["content"].get(JSON_MEDIA, {}).get("schema", {})
            for tier in schema.get("anyOf", [schema] if schema else []):
                named = components.get(tier.get("$ref", "").rpartition("/")[2], tier)
                if not named.get("properties"):
                    nameless.append(f"{method.upper()} {path}")
    assert nameless == ["GET /api/v1/openapi.json"]


def test_schemas_have_known_keywords_only_because_clients_ignore_the_others() -> None:
    found = {keyword for schema in schemas(openapi.document()) for keyword in schema}
    assert found == KEYWORDS


def test_an_answer_may_get_further_fields_without_a_break_of_generated_clients() -> None:
    document = openapi.document()
    named = document["components"]["schemas"]
    sent = [
        operation.get("requestBody", {}) for methods in document["paths"].values() for operation in methods.values()
    ]
    used = re.findall(r"#/components/schemas/(\w+)", json.dumps(sent))
    for name in used:  # grows while it is read
        used += {*re.findall(r"#/components/schemas/(\w+)", json.dumps(named[name]))} - {*used}
    closed = {name for name, schema in named.items() if schema.get("additionalProperties") is False}
    assert closed <= {*used}


def test_what_no_field_of_a_body_accepts_the_document_refuses_too() -> None:
    document = openapi.document(demo=True)
    values: list[Any] = [None, True, "", -1, 0, 1.5, 2**53, [], [1, 1], {}]
    wrong = []
    for route in DEMO_ROUTES:
        if route.body is None or route.docs.undocumented:
            continue
        media = document["paths"][route.path][route.method.lower()]["requestBody"]["content"][JSON_MEDIA]
        schema = jsonschema_rs.validator_for(
            media["schema"] | {"components": document["components"]}, validate_formats=True
        )
        for name in media["example"]:
            for value in values:
                sent = media["example"] | {name: value}
                if name in check(route.body, sent, {"now": NOW})[1] and schema.is_valid(sent):
                    wrong.append((route.method, route.path, name, value))
    assert wrong == [("POST", "/demo/clock", "advance", None)], "where one of two fields is needed"


def schemas(node: Any) -> Iterator[dict[str, Any]]:
    """Yield all schemas of a part of the document."""
    match node:
        case list():
            for item in node:
                yield from schemas(item)
        case dict():
            for key, value in node.items():
                if key == "schemas":
                    yield from (each for schema in value.values() for each in within(schema))
                elif key == "schema":
                    yield from within(value)
                elif key not in {"example", "examples"}:
                    yield from schemas(value)


def within(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and those that it contains. A schema may be True or False."""
    if isinstance(schema, dict):
        yield schema
        parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
        for part in (*parts, schema.get("items"), schema.get("additionalProperties")):
            yield from within(part)
