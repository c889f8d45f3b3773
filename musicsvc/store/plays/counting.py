"""Add recorded plays to the play counts: at once, or together with those of other transactions.

On PostgreSQL many transactions record plays at a time (`share`), and one of them changes the counts. Another that would
wait for it leaves its plays in a row of `play_count` instead, of the level UNCOUNTED, and commits. Its caller gets the
result when a transaction has counted them: the next one that records, of any node, or one that follows the commit.
What changes more than new plays runs alone (`lock`). SQLite has one writer, which always counts at once.
"""

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import orjson

from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays import ranks, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, counts
from musicsvc.store.plays.rollups.counts import COUNTING, ID_BITS, LAST_ID, LEVEL_SHIFT, LOCK, REST_BITS
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, TRACK

T = TypeVar("T")
ADD_TOTALS = """
    INSERT INTO track_plays (track_id, plays) {rows}
    ON CONFLICT (track_id) DO UPDATE SET plays = track_plays.plays + excluded.plays
"""
FIRST_OF_TRACKS, FIRST_OF_ALBUMS, FIRST_OF_ARTISTS, FIRST_OF_ACCOUNTS = (
    kind << ID_BITS for kind in (TRACK, ALBUM, ARTIST, ACCOUNT)
)
DAY_0 = counts.start(counts.DAY, 0) + FIRST_OF_TRACKS
COUNTED = itemgetter(0, 1, 2, 5)  # of a row of the table of plays: slot, track, listener and length
ROLLED_UP_PER_PLAY = 4  # subjects, more than a new play is likely to bring
ROLLED_UP_AT_ONCE = 1000  # subjects; takes about 25 ms
FIRST_UNCOUNTED = counts.UNCOUNTED << LEVEL_SHIFT
BATCHES_AT_ONCE = 64
LEFT = f"SELECT key FROM play_count WHERE key >= {FIRST_UNCOUNTED}"  # noqa: S608 - a constant
LEAVE = "INSERT INTO play_count (key, plays, own, listeners, histogram) VALUES (?, ?, 0, ?, ?)"
TAKE = f"""
    DELETE FROM play_count WHERE key IN ({LEFT} ORDER BY key LIMIT {BATCHES_AT_ONCE}) RETURNING listeners
"""  # noqa: S608 - a constant
MAY_COUNT = f"SELECT pg_try_advisory_xact_lock({COUNTING}), EXISTS ({LEFT})"
# Programs of version 0.1.0, whose connections have no name, take plays back without counting those left by others.
OLDER = """
    SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = '' LIMIT 1
"""


class Uncounted(NamedTuple):
    """New rows of the table of plays, and the listeners whose plays are own plays."""

    plays: Sequence[Sequence[Any]]
    own: Collection[int]


def lock() -> None:
    """Prevent other transactions from recording plays and changing their counts until this one ends."""
    sql.lock(LOCK)
    while rest := _take():
        _count(*rest)


def alone(unit: Callable[[], T]) -> T:
    """Call `unit` while no other transaction records plays, and all that are recorded are counted."""
    lock()
    return unit()


def is_behind() -> bool:
    """Return whether plays are recorded that are not counted yet."""
    return bool(fetch(f"{LEFT} LIMIT 1"))


def share() -> None:
    """Wait for transactions that run alone, and prevent others until this transaction ends."""
    sql.lock(LOCK, shared=True)


def add(plays: Sequence[Sequence[Any]], own: Collection[int]) -> None:
    """Count new rows of the table of plays, or leave them to another transaction. Call after `share` or `lock`.

    Plays that repeat some which are not counted yet are acknowledged after these. `own`: listeners whose plays are own
    plays.
    """
    if sql.is_sqlite():
        _count(plays, own)
        return
    ((counting, left),) = fetch(MAY_COUNT)
    if not counting and fetch(OLDER):
        sql.lock(COUNTING)
        counting = left = True
    if counting:
        rest = _take() if left else None
        _count(*(Uncounted([*rest.plays, *plays], {*rest.own, *own}) if rest else (plays, own)))
        return
    keys = [key for (key,) in fetch(LEFT)]
    if plays:
        keys.append(_leave(plays, own))
    if keys:
        sql.then(partial(_settle, keys))


def _leave(plays: Sequence[Sequence[Any]], own: Collection[int]) -> int:
    key = FIRST_UNCOUNTED + secrets.randbits(LEVEL_SHIFT)
    columns = [*zip(*plays, strict=True)]
    packed = orjson.dumps([[*own], columns[0], columns[1], columns[2], columns[5]])
    run(LEAVE, key, len(plays), packed, b"")
    return key


def _settle(keys: Collection[int]) -> bool:
    """Count plays that are left, unless another transaction does. Return whether those with these keys are counted."""
    if not _are_left(keys):
        return True
    share()
    ((counting, _),) = fetch(MAY_COUNT)
    if not counting:
        return False
    if rest := _take():
        _count(*rest)
        roll_up(len(rest.plays))
    return not _are_left(keys)


def _are_left(keys: Collection[int]) -> bool:
    among, values = sql.in_list(keys)
    return bool(fetch(f"{LEFT} AND key {among} LIMIT 1", values))


def _take() -> Uncounted | None:
    """Take back some plays that other transactions have left, to count them. Return None if there are none."""
    own = set[int]()
    plays: list[tuple[Any, ...]] = []
    for (packed,) in fetch(TAKE):
        listeners, slots, tracks, people, lengths = orjson.loads(packed)
        own.update(listeners)
        rest = [None] * len(slots)
        plays += zip(slots, tracks, people, rest, rest, lengths, strict=True)
    return Uncounted(plays, own) if plays else None


def roll_up(accepted: int) -> None:
    """Count some of the blocks that are due, unless another transaction counts: the more, the more plays are new."""
    if accepted and sql.try_lock(COUNTING):
        blocks.advance(min(ROLLED_UP_PER_PLAY * accepted, ROLLED_UP_AT_ONCE))


def _count(plays: Sequence[Sequence[Any]], own: Collection[int]) -> None:
    if not plays:
        return
    totals = Counter(map(itemgetter(1), plays))
    new, new_own = _by_day(plays, own, subjects.of_tracks(totals))
    for key, block in blocks.covering(new):
        new[block] += new[key]
        new_own[block] += new_own[key]
    counts.add(new, new_own)
    with ranks.moving(totals):
        bulk.insert_many(ADD_TOTALS, ("bigint", "bigint"), sorted(totals.items()))


def _by_day(
    plays: Iterable[Sequence[Any]], own: Collection[int], played: subjects.PlayedTracks
) -> tuple[dict[int, bytes], Counter[int]]:
    """Return packed plays and numbers of own plays by keys of days of tracks and of all that these count for."""
    new: dict[int, bytes] = defaultdict(bytes)
    new_own = Counter[int]()
    lengths, pack = played.lengths, counts.pack
    for slot, track, listener, duration_ms in map(COUNTED, plays):
        key = DAY_0 + (slot // SLOTS_PER_DAY << REST_BITS) + track
        new[key] += pack(slot, listener, duration_ms, lengths[track])
        if listener in own:
            new_own[key] += 1
    others = {track: _others(track, played) for track in played.lengths}
    for key, some in [*new.items()]:
        for apart in others[key & LAST_ID]:
            new[key + apart] += some
            if new_own:
                new_own[key + apart] += new_own[key]
    return new, new_own


def _others(track: int, played: subjects.PlayedTracks) -> list[int]:
    """Return how far the keys of all that plays of a track count for are from that of the track."""
    found = [FIRST_OF_ARTISTS + artist for artist in played.artists[track]]
    found += [FIRST_OF_ACCOUNTS + account for account in played.accounts[track]]
    if (album := played.albums[track]) is not None:
        found.append(FIRST_OF_ALBUMS + album)
    return [first - FIRST_OF_TRACKS - track for first in found]
