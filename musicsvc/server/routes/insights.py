"""Endpoints of the figures of tracks, albums and artists, and of exports as files or as a report."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from musicsvc.reports.formats import FORMATS
from musicsvc.server.handlers import exports, insights, listening, listens
from musicsvc.server.routes.route import EXTENSION, INSIGHTS, Cost, Docs, Family, RateLimit, Route, Runs
from musicsvc.server.schemas.explaining import Explanation
from musicsvc.server.schemas.exports import Export, Formats, Report
from musicsvc.server.schemas.insights import (
    AlbumFigures,
    ArtistFigures,
    Chart,
    Collaborations,
    Comparison,
    Figures,
    Found,
    FoundOfManager,
    Movers,
    Realtime,
)
from musicsvc.server.schemas.listening import Hours, Listening, Milestones, Releases
from musicsvc.server.schemas.listens import MissingTracks
from musicsvc.store.insights import figures
from musicsvc.store.plays.subjects import Subject

FOUND = Docs(raises=(404,))
EXPORT = f"{INSIGHTS}/export"
Counting = Cost(Runs.FIGURES, replica=True)
Managed = partial(Route, "GET", family=Family.INSIGHTS, cost=Counting)
Exporting = partial(
    Route,
    family=Family.INSIGHTS,
    limit=RateLimit.EXPORTS,
    private=True,
    cost=Cost(Runs.SLOW, reads=True, replica=True),
    docs=FOUND,
)


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
    row = {"family": Family.INSIGHTS, "private": True, "cost": Cost(replica=True), "find": of.find, **more}
    return Route("GET", of.path + path, handler, **row)


def each(
    of: Kind, path: str, handler: Callable[..., Any], *, extension: bool = False, tool: str = "", **more: Any
) -> Route:
    """Return the row of an endpoint whose handler serves tracks, albums and artists."""
    return insight(of, path, handler, docs=Docs(extension=extension, noun=of.noun, tool=tool), **more)


def figures_of(of: Kind, answer: type[BaseModel]) -> Sequence[Route]:
    return (
        each(of, "", insights.show, answer=answer, tool="figures"),
        each(of, "/charts", insights.chart, answer=Found[Chart], tool="chart"),
    )


def listening_of(of: Kind) -> Sequence[Route]:
    return (
        each(of, "/listening", listening.listening, answer=Found[Listening], extension=True, tool="listening"),
        each(of, "/hours", listening.hours, answer=Found[Hours], extension=True),
        each(of, "/milestones", listening.milestones, answer=Found[Milestones], extension=True),
        each(
            of, "/explain", insights.explain, answer=Found[Explanation], extension=True, tool="explain", cost=Counting
        ),
    )


# fmt: off
ROUTES: tuple[Route, ...] = (
    *figures_of(TRACK, Found[Figures]),
    insight(TRACK, "/realtime", insights.show_realtime, answer=Found[Realtime], cost=Cost()),
    *figures_of(ALBUM, Found[AlbumFigures]),
    *figures_of(ARTIST, Found[ArtistFigures]),
    insight(ARTIST, "/collaborations", insights.list_collaborations, answer=Found[Collaborations]),
    *listening_of(TRACK),
    *listening_of(ALBUM),
    insight(ALBUM, "/release", listening.compare_releases, answer=Found[Releases], docs=EXTENSION),
    *listening_of(ARTIST),
    Managed(f"{INSIGHTS}/missing-tracks", listens.list_missing, answer=Found[MissingTracks], docs=EXTENSION),
    Managed(f"{INSIGHTS}/find", insights.find, answer=Found[FoundOfManager], docs=replace(EXTENSION, tool="find")),
    Managed(f"{INSIGHTS}/compare", insights.compare, answer=Found[Comparison], private=True,
            docs=replace(FOUND, extension=True, tool="compare")),
    Managed(f"{INSIGHTS}/movers", insights.list_movers, answer=Found[Movers],
            docs=replace(EXTENSION, tool="movers")),
    Route("GET", f"{EXPORT}/formats", exports.list_formats, family=Family.INSIGHTS, answer=Formats,
          cost=Cost(Runs.CONSTANT)),
    Exporting("POST", f"{EXPORT}/csv", exports.export_table("csv"), docs=replace(FOUND, media="text/csv")),
    Exporting("POST", f"{EXPORT}/json", exports.export_table("json"), answer=Found[Export]),
    Exporting("POST", f"{EXPORT}/xlsx", exports.export_table("xlsx"),
              docs=replace(FOUND, media=FORMATS["xlsx"].media_type, extension=True)),
    Exporting("POST", f"{EXPORT}/report", exports.export_report, answer=Found[Report]),
    Exporting("POST", f"{EXPORT}/pdf", exports.export_pdf,
              cost=Cost(Runs.SLOW, reads=True, replica=True, render=exports.render_pdf),
              docs=replace(FOUND, media="application/pdf")),
)
# fmt: on
