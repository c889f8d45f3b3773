"""Endpoints of health checks and metrics."""

from musicsvc.server.handlers import health
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.schemas import answers

OPEN, PLAIN = Access.OPEN, Family.PLAIN

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/healthz", health.alive, OPEN, family=PLAIN, constant=True, plain_http=True, undocumented=True,
          answer=answers.Alive),
    Route("GET", "/readyz", health.ready, OPEN, family=PLAIN, plain_http=True, undocumented=True, answer=answers.Alive),
    Route("GET", "/metrics", health.expose_metrics, OPEN, family=PLAIN, no_store=True, undocumented=True),
)
# fmt: on
