"""Endpoints of the OpenAPI document, the page that shows it, health checks and metrics."""

from musicsvc.server.handlers import documents, health
from musicsvc.server.routes.route import V1, Access, Family, Route
from musicsvc.server.schemas import answers

OPEN, PLAIN = Access.OPEN, Family.PLAIN


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/openapi.json", documents.openapi, OPEN, no_store=True, extension=True),
    Route("GET", "/docs", documents.page, OPEN, family=PLAIN, no_store=True, undocumented=True),
    Route("GET", "/docs/{name}", documents.file, OPEN, family=PLAIN, no_store=True, undocumented=True),
    Route("GET", "/healthz", health.alive, OPEN, family=PLAIN, constant=True, probe=True, plain_http=True,
          undocumented=True, answer=answers.Alive),
    Route("GET", "/readyz", health.ready, OPEN, family=PLAIN, probe=True, plain_http=True, undocumented=True,
          answer=answers.Alive),
    Route("GET", "/metrics", health.expose_metrics, OPEN, family=PLAIN, probe=True, no_store=True, undocumented=True),
)
# fmt: on
