"""Endpoints of listening figures, plays by hour, milestones and compared releases, which extend the specification."""

from collections.abc import Sequence

from musicsvc.server.handlers import listening
from musicsvc.server.routes.insights import ALBUM, ARTIST, TRACK, Kind, each, insight
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.insights import Found
from musicsvc.server.schemas.listening import Hours, Listening, Milestones, ReleaseQuery, Releases
from musicsvc.server.schemas.periods import PeriodQuery


def listening_of(of: Kind) -> Sequence[Route]:
    return (
        each(of, "/listening", listening.listening, query=PeriodQuery, answer=Found[Listening], extension=True),
        each(of, "/hours", listening.hours, query=PeriodQuery, answer=Found[Hours], extension=True),
        each(of, "/milestones", listening.milestones, answer=Found[Milestones], extension=True),
    )


ROUTES = (
    *listening_of(TRACK),
    *listening_of(ALBUM),
    insight(ALBUM, "/release", listening.compare_releases, query=ReleaseQuery, answer=Found[Releases], extension=True),
    *listening_of(ARTIST),
)
