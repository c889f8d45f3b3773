"""The OpenAPI document and the page that shows it, from files of the package."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from musicsvc.errors import NotFound
from musicsvc.server.shapes.envelope import JSON, Download

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import Site

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


def openapi(site: Site) -> JSON:
    """Read this description of the API (OpenAPI 3.1)."""
    return _document(site.root)


@lru_cache(maxsize=1)
def _document(root: str) -> JSON:
    from musicsvc.server.openapi import document  # noqa: PLC0415 - the document describes the table that names this

    return document(root)


def page() -> Download:
    """Show the API's description to a person."""
    return _read(PAGE, "text/html")


def file(name: str) -> Download:
    """Send a file of the description's page."""
    if name not in FILES:
        raise NotFound("There is no such file.")
    return _read(name, FILES[name])


def _read(name: str, kind: str) -> Download:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Download(_content(name), f"{kind}; charset=utf-8", headers)


@lru_cache(maxsize=len(FILES) + 1)
def _content(name: str) -> bytes:
    """What the file holds, once for all who are being sent it."""
    return (PAGES / name).read_bytes()
