"""Count the likes and reposts that users gave to tracks, albums and artists in a range of days and did not withdraw."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.subjects import ALBUM, ARTIST, KINDS, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection

    from musicsvc.store.plays.periods import Window

# Conditions for the tracks of subjects; {ids} is a condition for the ids of the subjects.
OF_TRACKS = {
    TRACK: "track_id {ids}",
    ALBUM: "track_id IN (SELECT id FROM track WHERE album_id {ids})",
    ARTIST: "track_id IN (SELECT track_id FROM track_artist WHERE artist_id {ids})",
}
GIVEN = "{table} WHERE {tracks} AND created_at >= ? AND created_at < ?"
BY_SUBJECT = """
    SELECT s.id, (SELECT COUNT(*) FROM {likes}), (SELECT COUNT(*) FROM {reposts}) FROM {noun} s WHERE s.id {among}
"""
BY_DAY = f"""
    SELECT created_at / {DAY}, COUNT(*), 0 FROM {{likes}} GROUP BY created_at / {DAY}
    UNION ALL SELECT created_at / {DAY}, 0, COUNT(*) FROM {{reposts}} GROUP BY created_at / {DAY}
"""  # noqa: S608 - a constant
NOUNS = {kind: noun for noun, kind in KINDS.items()}


class Engagement(NamedTuple):
    """Numbers of likes and of reposts. The keys of both are days, or ids of tracks, albums or artists."""

    likes: Counter[int]
    reposts: Counter[int]


def by_subject(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts given in the window, by id of the track, album or artist."""
    condition, value = subjects.among(ids)
    span = window.starts, window.ends
    return _read(BY_SUBJECT, kind, "= s.id", (*span, *span, value), noun=NOUNS[kind], among=condition)


def by_day(kind: int, ids: Collection[int], window: Window) -> Engagement:
    """Return the likes and reposts of all these tracks, albums or artists together, by day of the window."""
    condition, value = subjects.among(ids)
    return _read(BY_DAY, kind, condition, (value, window.starts, window.ends) * 2)


def _read(query: str, kind: int, ids: str, values: tuple[object, ...], **names: str) -> Engagement:
    tracks = OF_TRACKS[kind].format(ids=ids)
    tables = {"likes": "track_like", "reposts": "track_repost"}
    given = {key: GIVEN.format(table=each, tracks=tracks) for key, each in tables.items()}
    found = Engagement(Counter(), Counter())
    for key, liked, reposted in fetch(query.format(**given, **names), *values):
        if liked:
            found.likes[key] += liked
        if reposted:
            found.reposts[key] += reposted
    return found
