"""The OpenAPI document breaks no client of the last release (docs/development/releasing.md)."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from typing import Any

import pytest

from musicsvc.server.openapi import document as openapi
from tests.releases import kept
from tests.releases.breaking import breaks

pytestmark = pytest.mark.only_on("sqlite")  # reads no database
FIGURES = "/api/v1/producer-intelligence/insights/tracks/{trackId}"
PATHS = ("/api/v1/albums", "/api/v1/albums/{id}", FIGURES)
WANTED: set[str] = {  # breaks that are meant: the line of each, with the reason beside it
    "POST /api/v1/access-tokens: body.days: minimum is higher",  # version 0.1.0 refused the same, and did not say so
    "POST /api/v1/access-tokens: body.days: maximum is lower",  # as above
    "POST /api/v1/fcm-tokens: body.token: minLength is higher",  # as above
    "DELETE /api/v1/fcm-tokens: body.token: minLength is higher",  # as above
}


@lru_cache(maxsize=1)
def released() -> dict[str, Any]:
    """Return the document of the last release."""
    found: dict[str, Any] = json.loads(kept.content(kept.releases()[-1], "openapi.json.xz"))
    return found


def test_the_document_breaks_no_client_of_the_last_release() -> None:
    assert set(breaks(released(), json.loads(json.dumps(openapi.document())))) == WANTED


def albums(document: dict[str, Any], method: str = "get") -> Any:
    return document["paths"]["/api/v1/albums"][method]


def schema(document: dict[str, Any], name: str) -> Any:
    return document["components"]["schemas"][name]


def period(document: dict[str, Any]) -> Any:
    (found,) = (part for part in document["paths"][FIGURES]["get"]["parameters"] if part["name"] == "period")
    return found["schema"]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "GET /api/v1/albums/{id} is gone": lambda of: of["paths"]["/api/v1/albums/{id}"].pop("get"),
    "POST /api/v1/albums is gone": lambda of: of["paths"]["/api/v1/albums"].pop("post"),
    "GET /api/v1/albums: parameter perPage is gone": lambda of: albums(of)["parameters"].pop(),
    "GET /api/v1/albums: parameter mood is required": lambda of: albums(of)["parameters"].append(
        {"in": "query", "name": "mood", "required": True, "schema": {}}
    ),
    "GET /api/v1/albums: parameter page: maximum is lower": lambda of: albums(of)["parameters"][0]["schema"].update(
        maximum=9
    ),
    f"GET {FIGURES}: parameter period: without 1-year": lambda of: period(of)["enum"].remove("1-year"),
    "GET /api/v1/albums: status 200 is gone": lambda of: albums(of)["responses"].pop("200"),
    "GET /api/v1/albums: needs a token": lambda of: albums(of).update(security=[{"bearer": []}]),
    "GET /api/v1/albums: status 200: header ETag is gone": lambda of: albums(of)["responses"]["200"]["headers"].pop(
        "ETag"
    ),
    "POST /api/v1/albums: body.label is required": lambda of: schema(of, "AlbumIn")["required"].append("label"),
    "POST /api/v1/albums: body.label is gone": lambda of: schema(of, "AlbumIn")["properties"].pop("label"),
    "POST /api/v1/albums: another operationId": lambda of: albums(of, "post").update(operationId="other"),
    "GET /api/v1/albums: status 200.albums.data[].id is gone": lambda of: schema(of, "Album")["properties"].pop("id"),
    "GET /api/v1/albums: status 200.albums.data[].id: is no integer any more": lambda of: schema(of, "Album")[
        "properties"
    ]["id"].update(type="string"),
}


@pytest.mark.parametrize("line", CHANGES)
def test_a_break_is_found(line: str) -> None:
    whole = released()
    before = {**whole, "paths": {path: whole["paths"][path] for path in PATHS}}
    now = deepcopy({name: before[name] for name in ("paths", "components")})
    assert breaks(before, now) == []
    CHANGES[line](now)
    assert line in breaks(before, now)
