"""Skips, completion, plays by hour and milestones of tracks, albums and artists, and comparison of albums."""

from musicsvc.server.schemas.listening import ReleaseQuery
from musicsvc.server.schemas.periods import PeriodQuery
from musicsvc.server.shapes import listening as shapes
from musicsvc.server.shapes.envelope import JSON, success
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.insights.listening import listening as store
from musicsvc.store.insights.listening import milestones as reached
from musicsvc.store.insights.listening import releases
from musicsvc.store.plays.subjects import Subject


def listening(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read how a track, album or artist was listened to: skips, completion, new and returning listeners."""
    found, _ = store.build(subject, query.window(now))
    return success(shapes.listening(found))


def hours(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read the plays of a track, album or artist by hour of the week."""
    return success(shapes.hours(store.hours(subject, query.window(now))))


def milestones(subject: Subject) -> JSON:
    """Read when a track, album or artist reached 100, 1,000, 10,000 … plays, and its best day."""
    return success(shapes.milestones(reached.build(subject)))


def compare_releases(subject: Subject, query: ReleaseQuery, caller: Identity, now: int) -> JSON:
    """Compare the plays of albums on the same days after their releases."""
    ids = releases.albums_of(subject, query.against, actor=caller)
    return success(shapes.releases(releases.build(ids, query.days, now), query.days))
