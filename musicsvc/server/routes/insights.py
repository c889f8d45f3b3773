"""Endpoints of the figures of tracks, albums and artists."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from musicsvc.server.handlers import insights, listening
from musicsvc.server.routes.route import INSIGHTS, Family, Route
from musicsvc.server.schemas.insights import (
    AlbumFigures,
    ArtistFigures,
    Chart,
    Collaborations,
    Figures,
    Found,
    Realtime,
)
from musicsvc.server.schemas.listening import Hours, Listening, Milestones, ReleaseQuery, Releases
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.store.insights import figures
from musicsvc.store.plays.subjects import Subject


class Kind(NamedTuple):
    """Tracks, albums or artists: the path of their endpoints, and the function that finds one of them."""

    noun: str
    path: str
    find: Callable[..., Subject]


TRACK = Kind("track", f"{INSIGHTS}/tracks/{{trackId}}", figures.track_of)
ALBUM = Kind("album", f"{INSIGHTS}/albums/{{albumId}}", figures.album_of)
ARTIST = Kind("artist", f"{INSIGHTS}/artists/{{artistId}}", figures.artist_of)


def insight(of: Kind, path: str, handler: Callable[..., Any], **more: Any) -> Route:
    """Return the row of an endpoint of tracks, albums or artists, below the path of one of them."""
    row = {"family": Family.INSIGHTS, "private": True, "replica": True, "find": of.find, **more}
    return Route("GET", of.path + path, handler, **row)


def each(of: Kind, path: str, handler: Callable[..., Any], **more: Any) -> Route:
    """Return the row of an endpoint whose handler serves tracks, albums and artists."""
    return insight(of, path, handler, noun=of.noun, **more)


def figures_of(of: Kind, answer: type[BaseModel]) -> Sequence[Route]:
    return (
        each(of, "", insights.show, query=PeriodQuery, answer=answer),
        each(of, "/charts", insights.chart, query=TimeframeQuery, answer=Found[Chart]),
    )


def listening_of(of: Kind) -> Sequence[Route]:
    return (
        each(of, "/listening", listening.listening, query=PeriodQuery, answer=Found[Listening], extension=True),
        each(of, "/hours", listening.hours, query=PeriodQuery, answer=Found[Hours], extension=True),
        each(of, "/milestones", listening.milestones, answer=Found[Milestones], extension=True),
    )


ROUTES: tuple[Route, ...] = (
    *figures_of(TRACK, Found[Figures]),
    insight(TRACK, "/realtime", insights.show_realtime, answer=Found[Realtime], replica=False),
    *figures_of(ALBUM, Found[AlbumFigures]),
    *figures_of(ARTIST, Found[ArtistFigures]),
    insight(ARTIST, "/collaborations", insights.list_collaborations, answer=Found[Collaborations]),
    *listening_of(TRACK),
    *listening_of(ALBUM),
    insight(ALBUM, "/release", listening.compare_releases, query=ReleaseQuery, answer=Found[Releases], extension=True),
    *listening_of(ARTIST),
)
