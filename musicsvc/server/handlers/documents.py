"""The OpenAPI document, and the page with the API's documentation."""

from collections.abc import Callable

from musicsvc.errors import NotFound
from musicsvc.server.pages import html
from musicsvc.server.shapes.envelope import Download, Representation

PAGE = "index.html"
FILES = ("init.js", "page.css", "swagger-ui.css", "swagger-ui-bundle.js")
# Swagger UI sets styles on its elements, which is allowed on this page alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def openapi(openapi_document: Callable[[], Representation]) -> Download:
    """Read this description of the API (OpenAPI 3.1)."""
    return Download.from_representation(openapi_document(), {"Cache-Control": "public, no-cache"})


def llms(llms_text: Callable[[], bytes]) -> Download:
    """List the documents, tools and endpoints of the service for assistants (llms.txt)."""
    return Download(llms_text(), "text/plain; charset=utf-8", {"Cache-Control": "public, no-cache"})


def page() -> Download:
    """Show the documentation of the API as a page for browsers."""
    return _send(PAGE)


def file(name: str) -> Download:
    """Send a script or style sheet of the documentation page. Raises NotFound for other names."""
    if name not in FILES:
        raise NotFound("There is no such file.")
    return _send(name)


def _send(name: str) -> Download:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Download.from_representation(html.represent_file(html.FOLDER / "docs" / name), headers)
