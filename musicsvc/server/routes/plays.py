"""The endpoint with which clients report plays of tracks."""

from musicsvc.server.handlers import plays
from musicsvc.server.routes.route import EXTENSION, V1, Cost, Route
from musicsvc.server.schemas.plays import Reported

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/plays", plays.report, status=201, keyed=True, docs=EXTENSION, answer=Reported,
          cost=Cost(counters_only=True, tally=plays.count_outcomes)),
)
# fmt: on
