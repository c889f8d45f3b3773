"""Endpoints of listening figures, plays by hour, milestones and compared releases, which extend the specification."""

from functools import partial

from musicsvc.server.handlers import listening
from musicsvc.server.routes.insights import ALBUM, ARTIST, TRACK, Insight
from musicsvc.server.schemas.insights import Found
from musicsvc.server.schemas.listening import Hours, Listening, Milestones, ReleaseQuery, Releases
from musicsvc.server.schemas.periods import PeriodQuery
from musicsvc.store.insights.figures import album_of, artist_of, track_of

Addition = partial(Insight, extension=True)

# fmt: off
ROUTES = (
    Addition("GET", f"{TRACK}/listening", listening.listening_track, find=track_of, query=PeriodQuery,
             answer=Found[Listening]),
    Addition("GET", f"{TRACK}/hours", listening.hours_track, find=track_of, query=PeriodQuery, answer=Found[Hours]),
    Addition("GET", f"{TRACK}/milestones", listening.milestones_track, find=track_of, answer=Found[Milestones]),
    Addition("GET", f"{ALBUM}/listening", listening.listening_album, find=album_of, query=PeriodQuery,
             answer=Found[Listening]),
    Addition("GET", f"{ALBUM}/hours", listening.hours_album, find=album_of, query=PeriodQuery, answer=Found[Hours]),
    Addition("GET", f"{ALBUM}/milestones", listening.milestones_album, find=album_of, answer=Found[Milestones]),
    Addition("GET", f"{ALBUM}/release", listening.compare_releases, find=album_of, query=ReleaseQuery,
             answer=Found[Releases]),
    Addition("GET", f"{ARTIST}/listening", listening.listening_artist, find=artist_of, query=PeriodQuery,
             answer=Found[Listening]),
    Addition("GET", f"{ARTIST}/hours", listening.hours_artist, find=artist_of, query=PeriodQuery, answer=Found[Hours]),
    Addition("GET", f"{ARTIST}/milestones", listening.milestones_artist, find=artist_of, answer=Found[Milestones]),
)
# fmt: on
