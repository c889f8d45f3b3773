"""The OpenAPI document and the page that shows it, from files of the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from musicsvc.errors import NotFound
from musicsvc.server.shapes.envelope import JSON, Download

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import Site

PAGES = Path(__file__).parents[1] / "pages"
KINDS = {".css": "text/css", ".js": "text/javascript", ".html": "text/html", ".png": "image/png"}
# Swagger UI sets styles on its elements, which is allowed on this page alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'"
)


def openapi(site: Site) -> JSON:
    """Read this description of the API (OpenAPI 3.1)."""
    from musicsvc.server.openapi import document  # noqa: PLC0415 - the document describes the table that names this

    return document(site.root)


def page() -> Download:
    """Show the API's description to a person."""
    return file("index.html")


def file(name: str) -> Download:
    """Send a file of the description's page."""
    path = PAGES / "docs" / name
    if name.startswith(".") or path.suffix not in KINDS or not path.is_file():
        raise NotFound("There is no such file.")
    kind = KINDS[path.suffix]
    return Download(path.read_bytes(), f"{kind}; charset=utf-8", {"Content-Security-Policy": POLICY})
