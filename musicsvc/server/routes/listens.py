"""The endpoints with which players report listens, as clients of ListenBrainz do, and those of pending listens."""

from musicsvc.server.handlers import listens
from musicsvc.server.routes.route import EXTENSION, LISTENS, UNDOCUMENTED, V1, Access, Cost, Family, Route
from musicsvc.server.schemas.answers import Paged, Success
from musicsvc.server.schemas.listens import ListensIn, PendingListens
from musicsvc.store.listens import pending

PENDING = f"{V1}/users/me/pending-listens"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{LISTENS}validate-token", listens.validate, Access.ANY_LISTENER, family=Family.LISTENS,
          docs=UNDOCUMENTED),
    Route("POST", f"{LISTENS}submit-listens", listens.submit, Access.LISTENER, family=Family.LISTENS, body=ListensIn,
          docs=UNDOCUMENTED, cost=Cost(counters_only=True, prepare=listens.match)),
    Route("GET", PENDING, listens.index, answer=Paged[PendingListens], docs=EXTENSION, cost=Cost(current=True)),
    Route("DELETE", f"{PENDING}/{{id}}", listens.dismiss, find=pending.find_own, private=True, answer=Success,
          docs=EXTENSION),
    Route("POST", f"{PENDING}/{{id}}", listens.name, find=pending.find_own, private=True, answer=Success,
          docs=EXTENSION),
    Route("DELETE", PENDING, listens.dismiss_all, answer=Success, docs=EXTENSION),
)
# fmt: on
