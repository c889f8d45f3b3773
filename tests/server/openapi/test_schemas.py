"""The schemas of the OpenAPI document tell a client what an answer contains."""

from __future__ import annotations

from musicsvc.server import openapi
from musicsvc.server.routes.route import JSON_MEDIA


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
