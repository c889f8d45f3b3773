"""Rebuild counts after tracks were assigned to other albums or artists, or after their lengths changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from musicsvc.store.engagement import engagement_days
from musicsvc.store.plays import subjects
from musicsvc.store.plays.rollups import blocks, counts, reader, recount
from musicsvc.store.plays.subjects import TRACK, Subject


@contextmanager
def rebuilding(tracks: Collection[int]) -> Iterator[None]:
    """After the `with` block, recount the plays, likes and reposts of albums and artists that gained or lost a track.

    `tracks`: the tracks that the block may change. If the block changes the length of a track, the completion of the
    track's plays is recomputed, except on days whose single plays were deleted.
    """
    if not tracks:
        yield
        return
    counts.lock()
    engagement_days.lock()
    before = subjects.of_tracks(tracks)
    yield
    after = subjects.of_tracks(tracks)
    belonged, belong = before.subjects(), after.subjects()
    engagement_days.rebuild(_changed(belonged, belong, tracks))
    kept_from = blocks.progress().kept_from
    played = reader.all_time_plays(TRACK, tracks)
    measured = [track for track in played if after.lengths[track] != before.lengths[track]]
    for track in measured:
        kept = (day for day in _days(TRACK, [track]) if day >= kept_from)
        recount.renew({counts.key(counts.DAY, day, TRACK, track) for day in kept})
    others = {each for track in measured for each in belong[track] if each.kind != TRACK}
    for kind, subject in sorted(_changed(belonged, belong, played) | others):
        days = _days(kind, [subject]) | _days(TRACK, subjects.tracks_of(kind, [subject]))
        recount.renew({counts.key(counts.DAY, day, kind, subject) for day in days})


def _changed(
    before: Mapping[int, list[Subject]], after: Mapping[int, list[Subject]], tracks: Iterable[int]
) -> set[Subject]:
    return {each for track in tracks for each in {*before.get(track, ())} ^ {*after.get(track, ())}}


def _days(kind: int, ids: Collection[int]) -> set[int]:
    """Return the days (since 1970-01-01) on which one of the tracks, albums or artists may have plays."""
    return {day for days, some in reader.spans(kind, ids) if some for day in days}
