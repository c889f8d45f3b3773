"""Checks of answers against the OpenAPI document, for every test that receives one."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs

from musicsvc.errors import MethodNotAllowed, NotFound
from musicsvc.server.openapi import document as openapi
from musicsvc.server.openapi import responses
from musicsvc.server.routes.route import INSIGHTS, JSON_MEDIA, V1, Router
from musicsvc.server.routes.table import ROUTES
from tests.support.serving import Answer, Client

JSON = dict[str, Any]


def conforms(answer: Answer, method: str, path: str, *, public: bool | None = None) -> None:
    """Assert that the document describes this answer; `public`: as one with or without the public fields only."""
    path = urlsplit(path if path.startswith(("/", "http")) else f"{V1}/{path}").path
    promised = _promised(method, path, answer.status)
    place = f"{answer.status} to {method} {path}"
    for name, reference in (responses.references(*responses.COMMON) | promised.get("headers", {})).items():
        header, value = _resolved(reference), answer.headers.get(name)
        if value is None and not header["required"]:
            continue
        assert value is not None, f"{place} is without {name}"
        schema = header["schema"]
        check(int(value) if schema["type"] == "integer" else value, schema, f"{name} of {place}")
    if method == "HEAD" or "content" not in promised:
        assert answer.body == b"", f"{place} has a body"
        return
    media = answer.headers["Content-Type"].partition(";")[0]
    assert media in promised["content"], place
    if media == JSON_MEDIA:
        check(json.loads(answer.body), _of_tier(promised["content"][media]["schema"], public=public), place)


def check(value: Any, schema: JSON, place: str) -> None:
    """Assert that the value matches the schema, with references into the document."""
    found = _validator(json.dumps(schema)).iter_errors(value)
    faults = [f"{'.'.join(map(str, fault.instance_path))}: {fault.message}" for fault in found]
    assert not faults, f"{place}: {faults}"


def _promised(method: str, path: str, status: int) -> JSON:
    """Return the Response Object of this status."""
    wanted = "GET" if method == "HEAD" else method
    document = _document()
    try:
        route, _ = _router().match(wanted, path)
    except (NotFound, MethodNotAllowed) as failure:
        name = "NotFound" if isinstance(failure, NotFound) else "MethodNotAllowed"
        prefix = "Insights" if path == INSIGHTS or path.startswith(f"{INSIGHTS}/") else ""
        assert status == (404 if name == "NotFound" else 405), f"{status} to {method} {path}, which is not in the table"
        return _resolved({"$ref": f"#/components/responses/{prefix}{name}"})
    assert not route.docs.undocumented, f"{method} {path} is not in the document"
    responses = document["paths"][route.path][route.method.lower()]["responses"]
    assert str(status) in responses, f"{status} to {method} {path} is not in the document"
    return _resolved(responses[str(status)])


def _of_tier(schema: JSON, *, public: bool | None) -> JSON:
    """Return the schema of one tier if the endpoint has two and `public` is known."""
    if public is None or "anyOf" not in schema:
        return schema
    chosen: JSON = schema["anyOf"][1 if public else 0]
    return chosen


@lru_cache(maxsize=1)
def _document() -> JSON:
    """Return the document with closed schemas, so that an answer with an undocumented field fails."""
    document = deepcopy(openapi.document())
    for schema in document["components"]["schemas"].values():
        schema.setdefault("additionalProperties", False)
    return document


@lru_cache(maxsize=1)
def _router() -> Router:
    return Router(ROUTES)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Return a validator of the schema, with references into the document and checks of formats."""
    whole = {**json.loads(schema), "components": _document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def _resolved(found: JSON) -> JSON:
    """Return the object, or the one that it refers to."""
    if "$ref" not in found:
        return found
    target: JSON = _document()
    for part in found["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return target


class CheckedClient(Client):
    """Fails for any response that the OpenAPI document does not describe."""

    async def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        answer = await super().__call__(method, path, body, **more)
        conforms(answer, method, path)
        return answer
