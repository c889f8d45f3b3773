"""Plays, listeners, likes and reposts of tracks, albums and artists, for the accounts that manage them."""

from musicsvc.errors import Overloaded
from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.explaining import ExplainQuery
from musicsvc.server.schemas.insights import CompareQuery, FindQuery, MoversQuery
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes import insights as shapes
from musicsvc.server.shapes.envelope import JSON, success
from musicsvc.server.shapes.explaining import explanation
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.dashboards import catalog_search, comparisons, trends
from musicsvc.store.insights import charts, collaborations, export_rows, figures, rankings, realtime
from musicsvc.store.plays import counting, history
from musicsvc.store.plays.periods import Window, day_of
from musicsvc.store.plays.subjects import ALBUM, KINDS, TRACK, Subject
from musicsvc.store.recounting import explain as explanations

FOUND = 10  # of each kind


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


def explain(subject: Subject, query: ExplainQuery, now: int) -> JSON:
    """Count the figures of a track, album or artist again from single plays, and compare. Raises Overloaded meanwhile.

    That is, while plays are stored that are not counted yet.
    """
    found = explanations.build(subject, history.adapt(query.window(now)), now)
    if found.differences and counting.is_behind():
        raise Overloaded("New plays are being counted. Try again in a second.")
    return success(explanation(subject, figures.name(subject), found))


def find(query: FindQuery, caller: Identity, now: int) -> JSON:
    """Find artists, albums and tracks that the caller manages, by name, ISRC or UPC."""
    none = Window("", day_of(now), day_of(now))
    kinds = [kind for noun, kind in KINDS.items() if query.kind in {None, f"{noun}s"}]
    found = catalog_search.find(query.q, caller.user_id, none, kinds=kinds, per_page=FOUND)
    return success(shapes.found(found.results))


def compare(query: CompareQuery, caller: Identity, now: int) -> JSON:
    """Compare two to five tracks, albums or artists that the caller manages, in total and day by day."""
    comparisons.check(query.subjects, user_id=caller.user_id)
    days = history.adapt(query.window(now))
    return success(shapes.compared(comparisons.build(query.subjects, days), days))


def list_movers(query: MoversQuery, caller: Identity, now: int) -> JSON:
    """List what the caller manages whose plays grew or fell most since the period before."""
    kind, days = KINDS[query.kind[:-1]], history.adapt(query.window(now))
    up, down = trends.read_movers(caller.user_id, kind, days, query.limit)
    names = export_rows.names(kind, [each.id for each in (*up, *down)]) if up or down else {}
    return success(shapes.movers(days, names, up, down))
