"""Endpoints of the plays, listeners, likes and reposts of tracks, albums and artists."""

from functools import partial

from musicsvc.server.handlers import insights
from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.server.routes.route import Family, Route
from musicsvc.server.schemas.insights import (
    AlbumFigures,
    ArtistFigures,
    Chart,
    Collaborations,
    Figures,
    Found,
    Realtime,
)
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.store.insights import figures as insights_store

TRACK = f"{INSIGHTS}/tracks/{{trackId}}"
ALBUM = f"{INSIGHTS}/albums/{{albumId}}"
ARTIST = f"{INSIGHTS}/artists/{{artistId}}"
Insight = partial(Route, family=Family.INSIGHTS, private=True)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Insight("GET", TRACK, insights.show_track, find=insights_store.track_of, query=PeriodQuery, answer=Found[Figures]),
    Insight("GET", f"{TRACK}/charts", insights.chart_track, find=insights_store.track_of, query=TimeframeQuery,
            answer=Found[Chart]),
    Insight("GET", f"{TRACK}/realtime", insights.show_realtime, find=insights_store.track_of, answer=Found[Realtime]),
    Insight("GET", ALBUM, insights.show_album, find=insights_store.album_of, query=PeriodQuery,
            answer=Found[AlbumFigures]),
    Insight("GET", f"{ALBUM}/charts", insights.chart_album, find=insights_store.album_of, query=TimeframeQuery,
            answer=Found[Chart]),
    Insight("GET", ARTIST, insights.show_artist, find=insights_store.artist_of, query=PeriodQuery,
            answer=Found[ArtistFigures]),
    Insight("GET", f"{ARTIST}/charts", insights.chart_artist, find=insights_store.artist_of, query=TimeframeQuery,
            answer=Found[Chart]),
    Insight("GET", f"{ARTIST}/collaborations", insights.list_collaborations, find=insights_store.artist_of,
            answer=Found[Collaborations]),
)
# fmt: on
