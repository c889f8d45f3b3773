"""Plays, listeners, likes and reposts of tracks, albums and artists, for the accounts that manage them."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes import insights as shapes
from musicsvc.server.shapes.envelope import JSON, success
from musicsvc.store.catalog import tracks
from musicsvc.store.insights import charts, collaborations, figures, rankings, realtime
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.subjects import ALBUM, TRACK, Subject


def show(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read the figures of a track, album or artist."""
    return success(data_of(subject, query.window(now)))


def data_of(subject: Subject, days: Window) -> JSON:
    """Return the figures of a track, album or artist as JSON, the same as in the response of the insights endpoint."""
    found = figures.figures(subject, days)
    if subject.kind == TRACK:
        return shapes.figures(found)
    if subject.kind == ALBUM:
        return shapes.album(found, rankings.tracks_of_album(subject.id, days))
    most_played = rankings.tracks_of_artist(subject.id, days), rankings.albums_of_artist(subject.id, days)
    return shapes.artist(found, figures.artist_counts(subject.id), *most_played)


def chart(subject: Subject, query: TimeframeQuery, now: int) -> JSON:
    """Read the plays, listeners, likes and reposts of a track, album or artist day by day."""
    return success(shapes.chart(charts.build(subject, query.window(now))))


def show_realtime(subject: Subject, now: int) -> JSON:
    """Read the current listeners and latest plays of a track."""
    return success(shapes.realtime(subject.id, realtime.load(subject, now), now))


def list_collaborations(subject: Subject, answer: AnswerBuilder) -> JSON:
    """Read the tracks that an artist shares with other artists."""
    found = collaborations.load(subject.id)
    return success(shapes.collaborations(found, answer.array(found.track_ids, catalog.track_nested, tracks.find)))
