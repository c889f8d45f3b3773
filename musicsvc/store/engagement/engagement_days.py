"""Daily numbers of likes and reposts of tracks, albums and artists, stored so that figures are fast to read.

A like counts on the day on which it was given, until it is withdrawn: for the track, its album, its artists, and once
for each account that manages one of these.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from peewee import EXCLUDED, SQL, Cast, Select, fn

from musicsvc.clock import DAY
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import compiled, current
from musicsvc.store.models import Artist, EngagementDay, Track, TrackArtist, TrackLike, TrackRepost

LOCK = 0x4C494B45  # "LIKE"
KEY: list[Any] = [EngagementDay.kind, EngagementDay.subject, EngagementDay.day]
NUMBERS: list[Any] = [EngagementDay.likes, EngagementDay.reposts]
ADDED = {field: field + EXCLUDED[field.name] for field in NUMBERS}


class WrongDay(NamedTuple):
    """A day with wrong stored numbers of likes or reposts of a track, album or artist. `counted`: correct numbers."""

    kind: int
    subject: int
    day: int
    stored: tuple[int, int]
    counted: tuple[int, int]


def subjects() -> Any:
    """Return the query for (kind, subject, track_id) of each track: those in whose counts its likes and reposts are.

    Kinds 0 to 3 are accounts, tracks, albums and artists (store/plays/subjects.py), which all rollups have.
    """
    credit, other, manager = TrackArtist, TrackArtist.alias(), Artist.alias()
    earlier = (
        other.select(other.artist)
        .join(manager, on=(manager.id == other.artist))
        .where(other.track == credit.track, manager.manager == Artist.manager, other.artist < credit.artist)
    )
    managed = credit.select(SQL("0"), Artist.manager, credit.track).join(Artist)
    return (
        Track.select(SQL("1").alias("kind"), Track.id.alias("subject"), Track.id.alias("track_id"))
        .union_all(Track.select(SQL("2"), Track.album, Track.id).where(Track.album.is_null(is_null=False)))
        .union_all(TrackArtist.select(SQL("3"), TrackArtist.artist, TrackArtist.track))
        .union_all(managed.where(Artist.manager.is_null(is_null=False), ~fn.EXISTS(earlier)))
    )


def _counted(*subject: int) -> Any:
    """Return the query for the rows of a subject (kind, id), or of all, counted from all likes and reposts."""
    one, none = SQL("1"), SQL("0")
    likes = _given(TrackLike, one.alias("likes"), none.alias("reposts"), *subject)
    return _sums(likes.union_all(_given(TrackRepost, none, one, *subject)).alias("given"), "likes", "reposts")


def _given(table: Any, likes: Any, reposts: Any, *subject: int) -> Any:
    of = subjects().alias("of")
    key = of.c.kind, of.c.subject
    query = table.select(*key, (table.created_at / DAY).alias("day"), likes, reposts)
    query = query.join(of, on=(of.c.track_id == table.track))
    return query.where(of.c.kind == subject[0], of.c.subject == subject[1]) if subject else query


def _sums(days: Any, *numbers: str) -> Any:
    """Return the query for the sums of columns by (kind, subject, day)."""
    key = days.c.kind, days.c.subject, days.c.day
    sums = [fn.SUM(getattr(days.c, number)).cast("bigint").alias(number) for number in numbers]
    return Select([days], [*key, *sums]).group_by(*key)


def lock(*, shared: bool = False) -> None:
    """Prevent tracks from being assigned to other albums and artists until this transaction ends.

    Several transactions may hold a `shared` lock, to rely on the assignment. To change it, `shared` must be False.
    """
    sql.lock(LOCK, shared=shared)


def add(track_id: int, given_at: int, *, likes: int = 0, reposts: int = 0) -> None:
    """Add likes and reposts (negative: subtract) given at a time (microseconds) to the counts of their day.

    The caller must hold the shared lock that the function `lock` acquires.
    """
    _add(track_id, given_at // DAY, likes, reposts)


@compiled
def _add(track_id: int, day: int, likes: int, reposts: int) -> Any:
    of = subjects().alias("of")
    key = of.c.kind, of.c.subject
    numbers = Cast(day, "integer"), Cast(likes, "bigint"), Cast(reposts, "bigint")
    # In one order, so that transactions do not wait for each other in a circle.
    rows = Select([of], [*key, *numbers]).where(of.c.track_id == track_id).order_by(*key)
    return EngagementDay.insert_from(rows, KEY + NUMBERS).on_conflict(conflict_target=KEY, update=ADDED)


def subtract(given: Collection[tuple[int, int, int, int]]) -> None:
    """Subtract from the counts what was given to many tracks: rows of track, day, likes and reposts.

    The caller must hold the lock that the function `lock` acquires.
    """
    belong: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for some in sql.batches(sorted({track for track, *_ in given})):
        for kind, subject, track in _subjects_of(some):
            belong[track].append((kind, subject))
    for track, day, likes, reposts in given:
        for kind, subject in belong[track]:
            numbers = sums[kind, subject, day]
            numbers[0] -= likes
            numbers[1] -= reposts
    _add_row.many([(*key, *numbers) for key, numbers in sorted(sums.items())])


@compiled
def _subjects_of(tracks: Collection[int]) -> Any:
    of = subjects().alias("of")
    return Select([of], [of.c.kind, of.c.subject, of.c.track_id]).where(of.c.track_id.in_(tracks))


@compiled
def _add_row(*row: int) -> Any:
    """Add likes and reposts to a day of a subject: kind, subject, day, likes, reposts."""
    new = EngagementDay.insert(dict(zip(KEY + NUMBERS, row, strict=True)))
    return new.on_conflict(conflict_target=KEY, update=ADDED)


def forget(tracks: Collection[int]) -> None:
    """Subtract all likes and reposts of tracks, which are about to be deleted, from the counts of their days.

    The caller must hold the lock that the function `lock` acquires.
    """
    of_tracks = (EngagementDay.kind == 1) & EngagementDay.subject.in_(tracks)
    days = EngagementDay.select(EngagementDay.subject, EngagementDay.day, *NUMBERS).where(of_tracks)
    subtract([*days.tuples().iterator()])
    EngagementDay.delete().where(of_tracks).execute()


def rebuild(subjects: Iterable[tuple[int, int]]) -> None:
    """Recount the daily likes and reposts of these tracks, albums or artists, given as (kind, id)."""
    for subject in sorted(subjects):
        _delete(*subject)
        _rebuild(*subject)


@compiled
def _delete(kind: int, subject: int) -> Any:
    return EngagementDay.delete().where(EngagementDay.kind == kind, EngagementDay.subject == subject)


@compiled
def _rebuild(kind: int, subject: int) -> Any:
    return EngagementDay.insert_from(_counted(kind, subject), KEY + NUMBERS)


def wrong() -> list[WrongDay]:
    """Return the days whose counts are wrong. Reads all likes and reposts."""
    counted, none = _counted().alias("counted"), SQL("0")
    zeros = none.alias("likes"), none.alias("reposts")
    stored = EngagementDay.select(*KEY, *(field.alias(f"stored_{field.name}") for field in NUMBERS), *zeros)
    key = counted.c.kind, counted.c.subject, counted.c.day
    found = stored.union_all(Select([counted], [*key, none, none, counted.c.likes, counted.c.reposts])).alias("found")
    key = found.c.kind, found.c.subject, found.c.day
    differ = [
        fn.SUM(getattr(found.c, f"stored_{name}")) != fn.SUM(getattr(found.c, name)) for name in ("likes", "reposts")
    ]
    sums = _sums(found, "stored_likes", "stored_reposts", "likes", "reposts").having(differ[0] | differ[1])
    rows = sums.order_by(*key).tuples().execute(current())
    return [WrongDay(kind, subject, day, (a, b), (c, d)) for kind, subject, day, a, b, c, d in rows]
