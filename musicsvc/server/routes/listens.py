"""Endpoints to report plays, or listens as clients of ListenBrainz do, and those of pending listens."""

from musicsvc.server.handlers import listens, plays
from musicsvc.server.routes.route import LISTENS, UNDOCUMENTED, V1, Access, Added, Cost, Family, Route
from musicsvc.server.schemas.answers import Paged, Success
from musicsvc.server.schemas.listens import ListensIn, PendingListens
from musicsvc.server.schemas.plays import Reported
from musicsvc.store.listens import pending

PENDING = f"{V1}/users/me/pending-listens"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Added("POST", f"{V1}/plays", plays.report, status=201, keyed=True, answer=Reported,
          cost=Cost(counters_only=True, tally=plays.count_outcomes)),
    Route("GET", f"{LISTENS}validate-token", listens.validate, Access.ANY_LISTENER, family=Family.LISTENS,
          docs=UNDOCUMENTED),
    Route("POST", f"{LISTENS}submit-listens", listens.submit, Access.LISTENER, family=Family.LISTENS, body=ListensIn,
          docs=UNDOCUMENTED, cost=Cost(counters_only=True, prepare=listens.match)),
    Added("GET", PENDING, listens.index, answer=Paged[PendingListens], cost=Cost(current=True)),
    Added("DELETE", f"{PENDING}/{{id}}", listens.dismiss, find=pending.find_own, private=True, answer=Success),
    Added("POST", f"{PENDING}/{{id}}", listens.name, find=pending.find_own, private=True, answer=Success),
    Added("DELETE", PENDING, listens.dismiss_all, answer=Success),
)
# fmt: on
