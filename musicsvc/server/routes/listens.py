"""The endpoints with which players report listens, where clients of ListenBrainz expect them."""

from musicsvc.server.handlers import listens
from musicsvc.server.routes.route import LISTENS, UNDOCUMENTED, Access, Cost, Family, Route
from musicsvc.server.schemas.listens import ListensIn

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{LISTENS}validate-token", listens.validate, Access.ANY_LISTENER, family=Family.LISTENS,
          docs=UNDOCUMENTED),
    Route("POST", f"{LISTENS}submit-listens", listens.submit, Access.LISTENER, family=Family.LISTENS, body=ListensIn,
          docs=UNDOCUMENTED, cost=Cost(counters_only=True, prepare=listens.match)),
)
# fmt: on
