"""Endpoints of the OpenAPI document, the page that shows it, the tools of assistants, health checks and metrics."""

from musicsvc.server.handlers import documents, health, tools
from musicsvc.server.routes.route import (
    EXTENSION,
    NO_STORE,
    TOOLS,
    UNDOCUMENTED,
    V1,
    Access,
    Cost,
    Family,
    Probe,
    Route,
    Runs,
)
from musicsvc.server.schemas import answers

OPEN, PLAIN = Access.OPEN, Family.PLAIN


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/openapi.json", documents.openapi, OPEN, cost=NO_STORE, docs=EXTENSION),
    Route("GET", "/docs", documents.page, OPEN, family=PLAIN, cost=NO_STORE, docs=UNDOCUMENTED),
    Route("GET", "/docs/{name}", documents.file, OPEN, family=PLAIN, cost=NO_STORE, docs=UNDOCUMENTED),
    Route("GET", "/llms.txt", documents.llms, OPEN, family=PLAIN, cost=NO_STORE, docs=UNDOCUMENTED),
    Route("POST", TOOLS, tools.describe, family=Family.TOOLS, cost=Cost(Runs.NO_STORE, reads=True), docs=UNDOCUMENTED),
    Route("GET", "/healthz", health.alive, OPEN, family=PLAIN, docs=UNDOCUMENTED, answer=answers.Alive,
          cost=Cost(Runs.CONSTANT, probe=Probe.HEALTH)),
    Route("GET", "/readyz", health.ready, OPEN, family=PLAIN, docs=UNDOCUMENTED, answer=answers.Ready,
          cost=Cost(probe=Probe.READY)),
    Route("GET", "/metrics", health.expose_metrics, OPEN, family=PLAIN, docs=UNDOCUMENTED,
          cost=Cost(Runs.NO_STORE, probe=Probe.METRICS)),
)
# fmt: on
