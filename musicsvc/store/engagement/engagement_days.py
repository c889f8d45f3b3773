"""Daily numbers of likes and reposts of tracks, albums and artists, stored so that figures are fast to read.

A like counts on the day on which it was given, until it is withdrawn: for the track, its album, its artists, and once
for each account that manages one of these.
"""

from collections.abc import Iterable
from typing import NamedTuple

from musicsvc.clock import DAY
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch, run

LOCK = 0x4C494B45  # "LIKE"
# Kinds 0 to 3 are accounts, tracks, albums and artists (store/plays/subjects.py), which all rollups have.
SUBJECTS = """
    SELECT 1 AS kind, id AS subject, id AS track_id FROM track
    UNION ALL SELECT 2, album_id, id FROM track WHERE album_id IS NOT NULL
    UNION ALL SELECT 3, artist_id, track_id FROM track_artist
    UNION ALL SELECT 0, a.manager_id, l.track_id FROM artist a JOIN track_artist l ON l.artist_id = a.id
    WHERE a.manager_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM track_artist o JOIN artist b ON b.id = o.artist_id
        WHERE o.track_id = l.track_id AND b.manager_id = a.manager_id AND o.artist_id < l.artist_id
    )
"""
ADD = f"""
    INSERT INTO engagement_day (kind, subject, day, likes, reposts)
    SELECT kind, subject, CAST(? AS INTEGER), CAST(? AS BIGINT), CAST(? AS BIGINT)
    FROM ({SUBJECTS}) AS s WHERE track_id = ? ORDER BY kind, subject
    ON CONFLICT (kind, subject, day) DO UPDATE SET
        likes = engagement_day.likes + excluded.likes, reposts = engagement_day.reposts + excluded.reposts
"""  # noqa: S608 - a constant
GIVEN = f"""
    SELECT s.kind, s.subject, g.created_at / {DAY} AS day, {{likes}} AS likes, {{reposts}} AS reposts
    FROM ({SUBJECTS}) AS s JOIN {{table}} g ON g.track_id = s.track_id {{those}}
"""  # noqa: S608 - constants
COUNTED = f"""
    SELECT kind, subject, day, CAST(SUM(likes) AS BIGINT) AS likes, CAST(SUM(reposts) AS BIGINT) AS reposts
    FROM (
        {GIVEN.format(table="track_like", likes=1, reposts=0, those="{those}")}
        UNION ALL {GIVEN.format(table="track_repost", likes=0, reposts=1, those="{those}")}
    ) AS given GROUP BY kind, subject, day
"""  # noqa: S608 - constants
REBUILD = "INSERT INTO engagement_day (kind, subject, day, likes, reposts) " + COUNTED.format(
    those="WHERE s.kind = ? AND s.subject = ?"
)
OF_TRACK = "SELECT day, likes, reposts FROM engagement_day WHERE kind = 1 AND subject = ?"
DELETE = "DELETE FROM engagement_day WHERE kind = ? AND subject = ?"
WRONG = f"""
    SELECT kind, subject, day, CAST(SUM(stored_likes) AS BIGINT), CAST(SUM(stored_reposts) AS BIGINT),
        CAST(SUM(likes) AS BIGINT), CAST(SUM(reposts) AS BIGINT)
    FROM (
        SELECT kind, subject, day, likes AS stored_likes, reposts AS stored_reposts, 0 AS likes, 0 AS reposts
        FROM engagement_day
        UNION ALL SELECT kind, subject, day, 0, 0, likes, reposts FROM ({COUNTED.format(those="")}) AS counted
    ) AS both_counts
    GROUP BY kind, subject, day
    HAVING SUM(stored_likes) <> SUM(likes) OR SUM(stored_reposts) <> SUM(reposts) ORDER BY kind, subject, day
"""  # noqa: S608 - constants


class WrongDay(NamedTuple):
    """A day with wrong stored numbers of likes or reposts of a track, album or artist. `counted`: correct numbers."""

    kind: int
    subject: int
    day: int
    stored: tuple[int, int]
    counted: tuple[int, int]


def lock(*, shared: bool = False) -> None:
    """Prevent tracks from being assigned to other albums and artists until this transaction ends.

    Several transactions may hold a `shared` lock, to rely on the assignment. To change it, `shared` must be False.
    """
    sql.lock(LOCK, shared=shared)


def add(track_id: int, given_at: int, *, likes: int = 0, reposts: int = 0) -> None:
    """Add likes and reposts (negative: subtract) given at a time (microseconds) to the counts of their day.

    The caller must hold the shared lock that the function `lock` acquires.
    """
    run(ADD, given_at // DAY, likes, reposts, track_id)


def forget(track_id: int) -> None:
    """Subtract all likes and reposts of a track, which is about to be deleted, from the counts of its days.

    The caller must hold the lock that the function `lock` acquires.
    """
    for day, likes, reposts in fetch(OF_TRACK, track_id):
        add(track_id, day * DAY, likes=-likes, reposts=-reposts)
    run(DELETE, 1, track_id)


def rebuild(subjects: Iterable[tuple[int, int]]) -> None:
    """Recount the daily likes and reposts of these tracks, albums or artists, given as (kind, id)."""
    for subject in sorted(subjects):
        run(DELETE, *subject)
        run(REBUILD, *subject, *subject)


def wrong() -> list[WrongDay]:
    """Return the days whose counts are wrong. Reads all likes and reposts."""
    return [WrongDay(kind, subject, day, (a, b), (c, d)) for kind, subject, day, a, b, c, d in fetch(WRONG)]
