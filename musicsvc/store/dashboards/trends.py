"""Tracks of an account whose plays grew or fell most, and those that have reached a milestone, read in one query."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import compiled, fetch
from musicsvc.store.insights import belonging
from musicsvc.store.insights.listening import milestones
from musicsvc.store.models import Artist, TrackArtist
from musicsvc.store.plays.ingest import AHEAD
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window, day_of
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.reader import PART_OF_SLOT, WHOLE_SLOTS, Reader
from musicsvc.store.plays.subjects import TRACK

FIRST_READ, FACTOR = 100, 20  # rows of each list; more if too few of them are the account's
ROWS = f"SELECT {counts.SUBJECT} AS track, {{sums}} FROM {{rows}}"  # noqa: S608 - our own names
SINGLE = "SELECT p.track_id AS track, {sums} FROM play p WHERE {time} AND p.track_id {among}"
# What is added up for each track.
SUMS = {
    "plays": "{plays} AS plays, 0 AS before, 0 AS later",
    "before": "0 AS plays, {plays} AS before, 0 AS later",
    "later": "0 AS plays, 0 AS before, {plays} AS later",
}
CHANGED = """
    WITH changed AS MATERIALIZED (
        SELECT track, CAST(SUM(plays) AS BIGINT) AS plays, CAST(SUM(before) AS BIGINT) AS before,
            CAST(SUM(later) AS BIGINT) AS later
        FROM ({parts}) AS parts GROUP BY track
    )
"""
# The number of a milestone has more digits than the plays before the window.
LISTS = f"""
    SELECT * FROM (
        SELECT 1 AS list, track, plays, before, 0 AS total FROM changed WHERE plays > before
        ORDER BY plays - before DESC, track DESC LIMIT ?
    ) AS up
    UNION ALL SELECT * FROM (
        SELECT 2, track, plays, before, 0 FROM changed WHERE plays < before
        ORDER BY before - plays DESC, track DESC LIMIT ?
    ) AS down
    UNION ALL SELECT * FROM (
        SELECT 3, c.track, c.plays, c.before, t.plays - c.later
        FROM changed c JOIN track_plays t ON t.track_id = c.track
        WHERE t.plays - c.later >= {milestones.FIRST} AND c.plays > 0
        AND LENGTH(CAST(t.plays - c.later AS TEXT)) > LENGTH(CAST(t.plays - c.later - c.plays AS TEXT))
        ORDER BY LENGTH(CAST(t.plays - c.later AS TEXT)) DESC, c.plays DESC, c.track DESC LIMIT ?
    ) AS reached
"""  # noqa: S608 - our own numbers


class Change(NamedTuple):
    """A track with its plays in the window and in the window before."""

    track: int
    plays: int
    before: int


class Trends(NamedTuple):
    """The tracks whose plays grew or fell most, and those that have passed the 100th, 1,000th … play in the window."""

    up: list[Change]
    down: list[Change]
    passed: list[int]


def read(user_id: int, window: Window, now: int, most: int) -> Trends:
    """Return the trends of an account's tracks, at most `most` of each kind. Milestones: the highest first."""
    ((count, first, last),) = _range(user_id)
    if not count:
        return Trends([], [], [])
    dense = last - first < sql.DENSE * count
    tracks = range(first, last + 1) if dense else [track for (track,) in _ids(user_id)]
    parts, values = _parts(tracks, window, now)
    limit = FIRST_READ
    while parts:
        statement = CHANGED.format(parts=" UNION ALL ".join(parts)) + LISTS
        rows = fetch(statement, *values, limit, limit, limit)
        shown = {row[1] for row in rows}
        own = {track for (track,) in belonging.managed(shown, user_id, kind=TRACK)} if dense and shown else shown
        lists = [[row for row in rows if row[0] == number] for number in (1, 2, 3)]
        found = [[row for row in some if row[1] in own][:most] for some in lists]
        if all(len(some) == most or len(every) < limit for some, every in zip(found, lists, strict=True)):
            up, down, passed = found
            compared = window.compared_with is not None
            return Trends(
                [Change(*row[1:4]) for row in up if compared],
                [Change(*row[1:4]) for row in down if compared],
                [row[1] for row in passed],
            )
        limit *= FACTOR
    return Trends([], [], [])


def _parts(tracks: Any, window: Window, now: int) -> tuple[list[str], list[Any]]:
    """Return SQL for the plays of the tracks in the window, in the one before, and after the window, and its values."""
    later = Window("", window.end, max(window.end, day_of(now + AHEAD) + 1))
    parts: list[str] = []
    values: list[Any] = []
    for column, of in zip(SUMS, (window, window.before, later), strict=True):
        if periods := Reader(of, all_time=False).periods if of.days else []:
            bounds = (TRACK << counts.ID_BITS) + tracks[0], (TRACK << counts.ID_BITS) + tracks[-1] + 1
            rows, some = (
                counts.rows_between(periods, *bounds)
                if isinstance(tracks, range)
                else counts.rows(periods, TRACK, tracks)
            )
            parts.append(ROWS.format(sums=SUMS[column].format(plays="plays"), rows=rows))
            values += some
    if window.before.seconds:
        for time, instants in _last_day(window.before):
            among, ids = sql.in_list(tracks) if not isinstance(tracks, range) else ("BETWEEN ? AND ?", None)
            parts.append(SINGLE.format(sums=SUMS["before"].format(plays=1), time=time, among=among))
            values += [*instants, *([tracks[0], tracks[-1]] if ids is None else [ids])]
    return parts, values


def _last_day(window: Window) -> Iterable[tuple[str, tuple[int, ...]]]:
    slot, rest = divmod(window.ends, SLOT)
    yield WHOLE_SLOTS, (window.end, window.end * SLOTS_PER_DAY, slot)
    if rest:
        yield PART_OF_SLOT, (slot, window.ends)


@compiled
def _range(user_id: int) -> Any:
    """Select the number of credits of the account's artists, and their lowest and highest track."""
    track = TrackArtist.track
    query = TrackArtist.select(fn.COUNT(track), fn.MIN(track), fn.MAX(track)).join(Artist)
    return query.where(managed_by(user_id))


@compiled
def _ids(user_id: int) -> Any:
    query = TrackArtist.select(TrackArtist.track).distinct().join(Artist)
    return query.where(managed_by(user_id)).order_by(TrackArtist.track)
