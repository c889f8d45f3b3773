"""The OpenAPI document, and the page with the API's documentation."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from musicsvc.errors import NotFound
from musicsvc.server.shapes.envelope import Download, Representation, represent

PAGES = Path(__file__).parents[1] / "pages" / "docs"
PAGE = "index.html"
FILES = {
    "init.js": "text/javascript",
    "page.css": "text/css",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
# Swagger UI sets styles on its elements, which is allowed on this page alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def openapi(openapi_document: Callable[[], Representation]) -> Download:
    """Read this description of the API (OpenAPI 3.1)."""
    return Download.from_representation(openapi_document(), {"Cache-Control": "public, no-cache"})


def page() -> Download:
    """Show the documentation of the API as a page for browsers."""
    return _send(PAGE, "text/html")


def file(name: str) -> Download:
    """Send a script or style sheet of the documentation page. Raises NotFound for other names."""
    if name not in FILES:
        raise NotFound("There is no such file.")
    return _send(name, FILES[name])


def _send(name: str, kind: str) -> Download:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Download.from_representation(_file(name, f"{kind}; charset=utf-8"), headers)


@lru_cache(maxsize=len(FILES) + 1)
def _file(name: str, content_type: str) -> Representation:
    """Return a file of the documentation page, with its gzip form. The result is cached."""
    return represent((PAGES / name).read_bytes(), content_type)
