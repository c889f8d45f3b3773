"""The places where the schemas of bodies and queries look at text of clients."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode

from pydantic import BaseModel

from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.fields import Body, Query
from musicsvc.server.schemas.pages.form import Form, parse_form
from musicsvc.server.schemas.reading import check_query, parse_body
from tests.adverse.places import CONTEXT, FEW, FIELD, NOW, ON_LOOP, Place


def all_places() -> Iterator[tuple[str, Place]]:
    """Yield the places of all bodies and queries, by their schemas."""
    found: dict[Any, Route] = {}
    for route in DEMO_ROUTES:
        for schema in (route.body, route.query):
            if schema is not None:
                found.setdefault(schema, route)
    for schema, route in found.items():
        yield f"{schema.__name__} of {route.path}", of_schema(schema)


def of_schema(schema: type[BaseModel]) -> Place:
    """Return the place where a body or a query of this schema is looked at."""
    if issubclass(schema, Query):
        return Place(partial(queried, schema), FIELD, ("…",), FEW, partial(in_query, schema))
    assert issubclass(schema, Body)
    parse = parse_form if issubclass(schema, Form) else parse_body
    make = in_form if issubclass(schema, Form) else in_json
    return Place(partial(parse, schema, context=CONTEXT), ON_LOOP, ("…",), FEW, partial(make, schema))


def queried(schema: type[Query], text: str) -> object:
    return check_query(schema, parse_qsl(text), now=NOW)


def in_query(schema: type[BaseModel], text: str) -> str:
    names = _names(schema)
    share = max(1, len(text) // len(names))
    return "&".join(f"{each}={quote_plus(text[:share])}" for each in names)[:FIELD]


def in_form(schema: type[BaseModel], text: str) -> bytes:
    names = _names(schema)
    share = max(1, len(text) // len(names))
    return urlencode([(each, text[:share]) for each in names]).encode()


def in_json(schema: type[BaseModel], text: str) -> bytes:
    document = schema.model_json_schema()
    return json.dumps(_filled(document, document, text), ensure_ascii=False).encode()


def _names(schema: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in schema.model_fields.items()] or ["a"]


def _filled(document: Any, schema: Any, text: str) -> Any:
    """Return a value of the shape of the JSON schema, with the text wherever a text or a number is."""
    if "$ref" in schema:
        schema = document["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return _filled(document, schema["anyOf"][0], text)
    if "properties" in schema:
        members = schema["properties"].items()
        return {each: _filled(document, inner, text[: max(1, len(text) // len(members))]) for each, inner in members}
    if schema.get("type") == "array":
        return [_filled(document, schema["items"], text[: max(1, len(text) // 3)])] * 3
    return text


def patterns_of(schema: Any) -> Iterator[str]:
    """Yield the patterns in a JSON schema."""
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from patterns_of(each)
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
