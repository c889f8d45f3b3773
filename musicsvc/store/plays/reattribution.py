"""Rebuild counts after tracks were assigned to other albums, artists or accounts, or after their lengths changed."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from musicsvc.store.engagement import engagement_days
from musicsvc.store.plays import counting, subjects
from musicsvc.store.plays.rollups import blocks, counts, reader, recount
from musicsvc.store.plays.subjects import TRACK, Subject


@contextmanager
def rebuilding(tracks: Collection[int]) -> Iterator[None]:
    """After the `with` block, recount plays, likes and reposts of albums, artists and accounts with other tracks.

    `tracks`: the tracks that the block may change. If the block changes the length of a track, the completion of the
    track's plays is recomputed, except on days whose single plays were deleted.
    """
    if not tracks:
        yield
        return
    counting.lock()
    engagement_days.lock()
    before = subjects.of_tracks(tracks)
    yield
    after = subjects.of_tracks(tracks)
    belong = after.subjects()
    changed = _changed(before.subjects(), belong)
    engagement_days.rebuild(changed)
    kept_from = blocks.progress().kept_from
    played = reader.all_time_plays(TRACK, tracks)
    for track in played:
        if after.lengths[track] != before.lengths[track]:
            kept = (day for day in _days([track]) if day >= kept_from)
            recount.renew({counts.key(counts.DAY, day, TRACK, track) for day in kept})
            for each in belong[track][1:]:
                changed[each].append(track)
    for (kind, subject), some in sorted(changed.items()):
        days = _days([track for track in some if track in played])
        recount.renew({counts.key(counts.DAY, day, kind, subject) for day in days})


def _changed(
    before: Mapping[int, list[Subject]], after: Mapping[int, list[Subject]]
) -> defaultdict[Subject, list[int]]:
    """Return the tracks that each album, artist or account has gained or lost."""
    found: defaultdict[Subject, list[int]] = defaultdict(list)
    for track in before.keys() | after.keys():
        for each in {*before.get(track, ())} ^ {*after.get(track, ())}:
            found[each].append(track)
    return found


def _days(tracks: Collection[int]) -> set[int]:
    """Return the days (since 1970-01-01) on which one of the tracks may have plays."""
    return {day for days, some in reader.spans(TRACK, tracks) if some for day in days}
