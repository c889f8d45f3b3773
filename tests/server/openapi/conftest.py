"""The document, and the endpoints that it describes, for tests of it."""

from typing import Any

import pytest

from musicsvc.server.openapi import document as openapi
from musicsvc.server.routes.route import V1, Route
from musicsvc.server.routes.table import ROUTES

SHOWN = [route for route in ROUTES if not route.docs.undocumented]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document("https://music.example.test")


def operation_of(document: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][V1 + path][method.lower()]
    return found


def each(routes: list[Route]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("route", routes, ids=lambda route: f"{route.method} {route.path.removeprefix(V1)}")
