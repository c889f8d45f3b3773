"""Rebuild the counts of albums and artists after tracks were moved to other albums or artists."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from musicsvc.store.catalog import engagement_days
from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays import subjects
from musicsvc.store.plays.rollups import monthly, tables, weekly
from musicsvc.store.plays.rollups.reader import all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from musicsvc.store.plays.subjects import Subject

MEMBERS = {
    ALBUM: "SELECT id FROM track WHERE album_id = ?",
    ARTIST: "SELECT track_id FROM track_artist WHERE artist_id = ?",
}
MONTHS = "SELECT DISTINCT block FROM play_block WHERE kind = ? AND subject {among} AND block < ?"
FROM_TRACKS = """
    SELECT day, plays, listeners FROM play_day WHERE day {days} AND kind = 1 AND subject {tracks} ORDER BY day
"""
DELETE = "DELETE FROM {table} WHERE {days} kind = ? AND subject = ?"


@contextmanager
def rebuilding(tracks: Collection[int]) -> Iterator[None]:
    """After the `with` block, rebuild the counts of albums and artists that gained or lost one of the tracks.

    These are the counts of plays, of likes and of reposts.
    """
    if not tracks:
        yield
        return
    tables.lock()
    engagement_days.lock()
    before = subjects.of_tracks(tracks)
    yield
    after = subjects.of_tracks(tracks)
    engagement_days.rebuild(_changed(before, after, tracks))
    watermark = monthly.watermark()
    for subject in sorted(_changed(before, after, all_time_plays(TRACK, tracks))):
        _rebuild(subject, watermark)


def _changed(
    before: Mapping[int, list[Subject]], after: Mapping[int, list[Subject]], tracks: Iterable[int]
) -> set[Subject]:
    return {each for track in tracks for each in {*before[track]} ^ {*after[track]}}


def _rebuild(subject: Subject, watermark: monthly.Watermark) -> None:
    """Replace the daily and monthly play counts of an album or artist by those recomputed from its tracks."""
    tracks = [track for (track,) in fetch(MEMBERS[subject.kind], subject.id)]
    days, values = dialect.in_list(_days(subject, tracks, watermark))
    run(DELETE.format(table="play_day", days=f"day {days} AND"), values, *subject)
    weekly.delete(*subject)
    run(DELETE.format(table="play_block", days=""), *subject)
    among, ids = dialect.in_list(tracks)
    found = fetch(FROM_TRACKS.format(days=days, tracks=among), values, ids)
    tables.replace(tables.DAILY, [(day, *subject, *counts) for day, counts in tables.add_up(found).items()])
    by_month = ((day // monthly.DAYS, plays, packed) for day, plays, packed in found)
    months = tables.add_up(row for row in by_month if watermark.rolled_up(row[0], *subject))
    tables.replace(tables.MONTHLY, [(*subject, month, *counts) for month, counts in months.items()])


def _days(subject: Subject, tracks: Collection[int], watermark: monthly.Watermark) -> list[int]:
    """Return the days (since 1970-01-01, ascending) on which the album, artist or one of its tracks may have plays."""
    found = {*monthly.open_days(watermark)}
    for kind, ids in ((subject.kind, [subject.id]), (TRACK, tracks)):
        among, values = dialect.in_list(ids)
        for (month,) in fetch(MONTHS.format(among=among), kind, values, watermark.month):
            found.update(monthly.days_of(month))
    return sorted(found)
