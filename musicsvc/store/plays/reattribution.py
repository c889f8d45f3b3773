"""Rebuild counts after tracks were assigned to other albums or artists, or after their lengths changed."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import daily, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import day_parts, histograms, monthly, tables, weekly
from musicsvc.store.plays.rollups.reader import all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

MEMBERS = {
    ALBUM: "SELECT id FROM track WHERE album_id = ?",
    ARTIST: "SELECT track_id FROM track_artist WHERE artist_id = ?",
}
MONTHS = "SELECT DISTINCT block FROM play_block WHERE kind = ? AND subject {among} AND block < ?"
FROM_TRACKS = f"SELECT {daily.DAY}, plays, listeners, histogram FROM {{rows}} ORDER BY key"  # noqa: S608 - our own names
HISTOGRAMS = f"SELECT {daily.DAY}, {daily.SUBJECT}, histogram FROM {{rows}}"  # noqa: S608 - our own names
PLAYS = "SELECT track_id, slot, duration_ms FROM play WHERE slot >= ? AND slot < ? AND track_id {tracks}"
DELETE_MONTHS = "DELETE FROM play_block WHERE kind = ? AND subject = ?"


@contextmanager
def rebuilding(tracks: Collection[int]) -> Iterator[None]:
    """After the `with` block, recount the plays, likes and reposts of albums and artists that gained or lost a track.

    `tracks`: the tracks that the block may change. If the block changes the length of a track, the completion of the
    track's plays is recomputed.
    """
    if not tracks:
        yield
        return
    tables.lock()
    engagement_days.lock()
    before = subjects.of_tracks(tracks)
    yield
    after = subjects.of_tracks(tracks)
    belonged, belong = before.subjects(), after.subjects()
    engagement_days.rebuild(_changed(belonged, belong, tracks))
    watermark = monthly.watermark()
    played = all_time_plays(TRACK, tracks)
    lengths = {track: after.lengths[track] for track in played if after.lengths[track] != before.lengths[track]}
    measured = _measure(lengths, watermark) if lengths else set()
    others = {each for track in measured for each in belong[track] if each.kind != TRACK}
    for subject in sorted(_changed(belonged, belong, played) | others):
        _rebuild(subject, watermark)


def _changed(
    before: Mapping[int, list[Subject]], after: Mapping[int, list[Subject]], tracks: Iterable[int]
) -> set[Subject]:
    return {each for track in tracks for each in {*before[track]} ^ {*after[track]}}


def _measure(lengths: Mapping[int, int], watermark: monthly.Watermark) -> set[int]:
    """Recompute the completion of plays for new track `lengths` by id. Return the tracks that were recomputed.

    Days whose single plays were deleted keep their completion.
    """
    days = [day for day in _days(TRACK, lengths, watermark) if day >= watermark.kept_from]
    found = daily.fetch_rows(HISTOGRAMS, days, TRACK, lengths)
    timed = {(day, track) for day, track, packed in found if histograms.unpack([packed]).timed}
    among, ids = dialect.in_list(lengths)
    for day in sorted({day for day, _ in timed}):
        packed: dict[int, bytes] = defaultdict(bytes)
        slots = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
        for track, slot, duration_ms in fetch(PLAYS.format(tracks=among), *slots, ids):
            packed[track] += histograms.pack(slot, duration_ms, lengths[track])
        measured = [(histograms.merge([some]), daily.key(day, TRACK, track)) for track, some in packed.items()]
        run_many("UPDATE play_day SET histogram = ? WHERE key = ?", measured)
    tracks = {track for _, track in timed}
    for track in tracks:
        counts = daily.fetch_rows(FROM_TRACKS, _days(TRACK, [track], watermark), TRACK, [track])
        _roll_up(Subject(TRACK, track), counts, watermark)
    return tracks


def _rebuild(subject: Subject, watermark: monthly.Watermark) -> None:
    """Recompute the daily and monthly play counts of an album or artist from the daily counts of its tracks."""
    tracks = [track for (track,) in fetch(MEMBERS[subject.kind], subject.id)]
    days = {*_days(subject.kind, [subject.id], watermark), *_days(TRACK, tracks, watermark)}
    tables.delete(tables.DAILY, [(day, *subject) for day in days])
    found = daily.fetch_rows(FROM_TRACKS, days, TRACK, tracks)
    tables.replace(tables.DAILY, [(day, *subject, *counts) for day, counts in tables.add_up(found).items()])
    day_parts.rebuild({subject.kind: {subject.id: days}})
    _roll_up(subject, found, watermark)


def _roll_up(subject: Subject, found: Iterable[tuple[int, int, bytes, bytes]], watermark: monthly.Watermark) -> None:
    """Recompute monthly counts from `found`, rows of (day, plays, listeners, histogram). Delete the weekly counts."""
    weekly.delete(*subject)
    run(DELETE_MONTHS, *subject)
    by_month = ((day // monthly.DAYS, plays, people, packed) for day, plays, people, packed in found)
    months = tables.add_up(row for row in by_month if watermark.rolled_up(row[0], *subject))
    tables.replace(tables.MONTHLY, [(*subject, month, *counts) for month, counts in months.items()])


def _days(kind: int, ids: Collection[int], watermark: monthly.Watermark) -> list[int]:
    """Return the days (since 1970-01-01) on which one of the tracks, albums or artists may have plays."""
    among, values = dialect.in_list(ids)
    months = fetch(MONTHS.format(among=among), kind, values, watermark.month)
    return [day for (month,) in months for day in monthly.days_of(month)] + [*monthly.open_days(watermark)]
