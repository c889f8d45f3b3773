"""The OpenAPI 3.1 document, built from the table of endpoints and the schemas of requests and responses."""

from functools import lru_cache

import orjson

import musicsvc
from musicsvc.config import Server
from musicsvc.server.openapi import about, headers, responses
from musicsvc.server.openapi.models import Models
from musicsvc.server.openapi.operations import operation, tags
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.representation import JSON_TYPE, Representation, represent

DEFAULT_ROOT = f"http://{Server().host}:{Server().port}"


@lru_cache(maxsize=1)
def encoded_document(root: str) -> Representation:
    """Return the OpenAPI document as JSON bytes, with a gzip form. Cached. `root`: the base URL of the service."""
    return represent(orjson.dumps(document(root)), JSON_TYPE)


def document(root: str = DEFAULT_ROOT) -> JSON:
    """Build the OpenAPI document, which takes about 50 ms. `root`: the base URL of the service."""
    shown = [route for route in ROUTES if not route.undocumented]
    models = Models(shown)
    paths: JSON = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, models)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "musicsvc",
            "version": musicsvc.__version__,
            "summary": "A music catalog, playlist and creator-analytics API.",
            "description": about.TEXT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": root}],
        "tags": tags(shown),
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": about.TOKENS}},
            "headers": headers.HEADERS,
            "responses": responses.shared(models),
            "schemas": models.definitions,
        },
    }
