"""Make play counts again after plays were deleted or tracks were assigned to other albums, artists or accounts.

Days of tracks are counted from single plays, days of others from those of their tracks (which are kept when single
plays are deleted), and blocks from days.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch, stream_rows
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, counts, listeners
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY, Counts
from musicsvc.store.plays.subjects import NOUNS, TRACK, Subject

# Own plays are those of a listener that is an account; only this account reports them.
PLAYS = f"""
    SELECT p.slot, p.track_id, p.listener_id, p.duration_ms, COALESCE(t.duration, d.duration, 0),
        p.reporter > 0 AND EXISTS (SELECT 1 FROM listener l WHERE l.id = p.listener_id AND {listeners.IS_ACCOUNT})
    FROM {{source}}play p LEFT JOIN track t ON t.id = p.track_id
    LEFT JOIN deleted_track d ON d.kind = 1 AND d.subject = p.track_id WHERE {{which}}
"""  # noqa: S608 - constants
OF_DAY = PLAYS.format(source="", which="p.slot >= ? AND p.slot < ?")
OF_TRACKS = f"p.slot / {SLOTS_PER_DAY} = given.value AND p.track_id = chosen.value"  # reads the index play_of_day
DAYS_AT_ONCE = 8  # of which the rows of all tracks of an account are in memory


Members = Callable[[int, frozenset[int]], list[int]]


def members(kind: int, ids: frozenset[int]) -> list[int]:
    """Return the tracks of these albums, artists or accounts (`kind`), ascending."""
    return sorted(subjects.tracks_of(kind, ids))


def recount(level: int, keys: Collection[int], members: Members = members) -> dict[int, Counts]:
    """Count the rows with these keys of one level again, from the level below. Rows without plays are absent.

    The keys of tracks on days must be of days whose single plays are kept.
    """
    if level != DAY:
        return blocks.from_days(keys)
    found: dict[int, Counts] = {}
    for kind in NOUNS:
        if some := {key for key in keys if key >> counts.ID_BITS & counts.LAST_KIND == kind}:
            found |= _days_of_tracks(some) if kind == TRACK else _days_of_others(kind, some, members)
    return found


def renew(keys: Collection[int]) -> None:
    """Count these rows of days again, then the blocks that contain them. Days of tracks come before those of others."""
    # One subject after the other, whose tracks are found once: of an account with many it takes most of the time.
    once = lru_cache(maxsize=1)(members)
    for some in sql.batches(sorted(keys, key=lambda key: (key & counts.REST, key)), DAYS_AT_ONCE):
        renew_days(some, once)
    renew_blocks(keys)


def renew_days(keys: Collection[int], members: Members = members) -> int:
    """Count these rows of days again. Return the number of their plays."""
    found = recount(DAY, keys, members)
    counts.replace(keys, found)
    return sum(plays for plays, *_ in found.values())


def renew_blocks(keys: Iterable[int]) -> None:
    """Count the blocks again that contain these rows of days."""
    covering = {block for _, block in blocks.covering(keys)}
    for level in (BLOCK8, BLOCK32):
        some = {block for block in covering if block >> counts.LEVEL_SHIFT == level}
        counts.replace(some, recount(level, some))


def of_day(day: int) -> tuple[dict[int, Counts], int]:
    """Count all rows of a day (since 1970-01-01) from its single plays. Return the rows, and the number of plays."""
    tracks = _count(stream_rows(OF_DAY, day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY))
    return counts.add_up(owners(tracks)), sum(plays for plays, *_ in tracks.values())


def owners(tracks: Mapping[int, Any]) -> Iterable[tuple[Any, ...]]:
    """Yield the rows of days of tracks, given by key, each also with the keys of the track's other subjects.

    A track that is unknown counts only for itself.
    """
    belong = subjects.of_tracks({key & counts.LAST_ID for key in tracks}).subjects()
    for key, some in tracks.items():
        period, track = key - (key & counts.REST), key & counts.LAST_ID
        for kind, subject in belong.get(track, [Subject(TRACK, track)]):
            yield period + (kind << counts.ID_BITS) + subject, *some


def _days_of_tracks(keys: Collection[int]) -> dict[int, Counts]:
    given, days = sql.table_of(sorted({counts.first_day(key) for key in keys}))
    chosen, tracks = sql.table_of(sorted({key & counts.LAST_ID for key in keys}), "chosen")
    statement = PLAYS.format(source=f"{given} CROSS JOIN {chosen} CROSS JOIN ", which=OF_TRACKS)
    found = _count(fetch(statement, days, tracks))
    return {key: found[key] for key in keys & found.keys()}


def _days_of_others(kind: int, keys: Collection[int], members: Members) -> dict[int, Counts]:
    """Count days of albums, artists or accounts (`kind`) from those of their tracks."""
    tracks = members(kind, frozenset(key & counts.LAST_ID for key in keys))
    if not tracks:
        return {}
    rows, values = counts.dense_rows({key - (key & counts.REST) for key in keys}, TRACK, tracks)
    stored = {key: some for key, *some in fetch(counts.ROWS.format(rows=rows), *values)}
    return counts.add_up((key, *some) for key, *some in owners(stored) if key in keys)


def _count(plays: Iterable[Any]) -> dict[int, Counts]:
    """Count the days of tracks from rows of PLAYS."""
    packed: dict[int, bytearray] = defaultdict(bytearray)
    own = Counter[int]()
    for slot, track, listener, duration_ms, length, is_own in plays:
        key = counts.key(DAY, slot // SLOTS_PER_DAY, TRACK, track)
        packed[key] += counts.pack(slot, listener, duration_ms, length)
        own[key] += is_own
    return counts.add_up((key, plays, own[key], *blobs) for key, (plays, *blobs) in _split(packed))


def _split(packed: Mapping[int, bytearray]) -> Iterable[tuple[int, tuple[int, bytes, bytes]]]:
    return ((key, counts.split(bytes(some))) for key, some in packed.items())
