"""Skips, completion, plays by hour and milestones of tracks, albums and artists, and comparison of albums."""

from musicsvc.server.schemas.listening import ReleaseQuery
from musicsvc.server.schemas.periods import PeriodQuery
from musicsvc.server.shapes import listening as shapes
from musicsvc.server.shapes.envelope import JSON, success
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.insights.listening import listening, milestones, releases
from musicsvc.store.plays.subjects import Subject


def listening_track(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read how a track was listened to: skips, completion, new and returning listeners."""
    return success(shapes.listening(listening.build(subject, query.window(now))))


def listening_album(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read how an album was listened to: skips, completion, new and returning listeners."""
    return listening_track(subject, query, now)


def listening_artist(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read how an artist was listened to: skips, completion, new and returning listeners."""
    return listening_track(subject, query, now)


def hours_track(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read a track's plays by hour of the week."""
    return success(shapes.hours(listening.hours(subject, query.window(now))))


def hours_album(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read an album's plays by hour of the week."""
    return hours_track(subject, query, now)


def hours_artist(subject: Subject, query: PeriodQuery, now: int) -> JSON:
    """Read an artist's plays by hour of the week."""
    return hours_track(subject, query, now)


def milestones_track(subject: Subject) -> JSON:
    """Read when a track reached 100, 1,000, 10,000 … plays, and its best day."""
    return success(shapes.milestones(milestones.build(subject)))


def milestones_album(subject: Subject) -> JSON:
    """Read when an album reached 100, 1,000, 10,000 … plays, and its best day."""
    return milestones_track(subject)


def milestones_artist(subject: Subject) -> JSON:
    """Read when an artist reached 100, 1,000, 10,000 … plays, and its best day."""
    return milestones_track(subject)


def compare_releases(subject: Subject, query: ReleaseQuery, caller: Identity, now: int) -> JSON:
    """Compare the plays of albums on the same days after their releases."""
    ids = releases.albums_of(subject, query.against, actor=caller)
    return success(shapes.releases(releases.build(ids, query.days, now), query.days))
