"""Endpoints of the OpenAPI document and of the page that shows it."""

from musicsvc.server.handlers import documents
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Access, Family, Route

OPEN, PLAIN = Access.OPEN, Family.PLAIN

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/openapi.json", documents.openapi, OPEN, no_store=True, extension=True),
    Route("GET", "/docs", documents.page, OPEN, family=PLAIN, no_store=True, undocumented=True),
    Route("GET", "/docs/{name}", documents.file, OPEN, family=PLAIN, no_store=True, undocumented=True),
)
# fmt: on
