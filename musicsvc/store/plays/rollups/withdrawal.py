"""Delete selected plays, such as those of an import, and correct all counts, some thousands of plays at a time."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import counting, ranks
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.reported import own_plays
from musicsvc.store.plays.rollups import counts, recount
from musicsvc.store.plays.subjects import TRACK

TAKEN_AT_ONCE = 20_000  # plays, about 150 ms
NO_LIMIT = 1 << 62
READ_AT_ONCE = 200_000  # plays of all sources of the tracks and days that are counted again
PLAYS = "SELECT slot, track_id, listener_id FROM play WHERE slot >= ? AND slot < ? AND {chosen} ORDER BY slot LIMIT ?"
DELETE = "DELETE FROM play WHERE slot >= ? AND slot < ? AND {chosen}"
DROP = "DELETE FROM play WHERE slot = ? AND track_id = ? AND listener_id = ? AND client_key = ?"
TOTALS = "UPDATE track_plays SET plays = plays - ? WHERE track_id = ?"
NO_TOTALS = "DELETE FROM track_plays WHERE plays = 0 AND track_id {among}"


class Selection(NamedTuple):
    """An SQL condition on rows of the table of plays, and its values.

    It is applied to the plays of a day. An index of its columns would be read as a whole for each day.
    """

    condition: str
    values: tuple[int, ...]


class Withdrawn(NamedTuple):
    """The number of deleted plays, and the days on which selected plays may remain."""

    plays: int
    days: Sequence[int]


def withdraw(chosen: Selection, days: Sequence[int], own: int | None = None) -> Withdrawn:
    """Delete some of the selected plays on the first of these `days` (since 1970-01-01), and correct all counts.

    `own`: the listener whose plays are own plays, if there are any.
    """
    counting.lock()
    taken = Counter[int]()  # plays by track
    changed = set[int]()  # rows of days
    finished = read = 0
    for day in days:
        if taken.total() >= TAKEN_AT_ONCE or read >= READ_AT_ONCE:
            break
        complete, tracks = _delete(chosen, day, own)
        finished += complete
        if tracks:
            taken += tracks
            read += _renew({counts.key(counts.DAY, day, TRACK, track) for track in tracks}, changed)
        if not complete:
            break
    if taken:
        recount.renew_blocks(changed)
        _subtract(taken)
    return Withdrawn(taken.total(), days[finished:])


def remove(plays: Collection[tuple[int, int, int, bytes]]) -> None:
    """Delete plays, given by their primary keys, and correct all counts. The caller must hold `counting.lock`."""
    if plays:
        run_many(DROP, list(plays))
        changed = set[int]()
        _renew({counts.key(counts.DAY, slot // SLOTS_PER_DAY, TRACK, track) for slot, track, *_ in plays}, changed)
        recount.renew_blocks(changed)
        _subtract(Counter(track for _, track, *_ in plays))


def _renew(days: set[int], changed: set[int]) -> int:
    """Count these days of tracks again, and those of their albums, artists and accounts. Add all of them to `changed`.

    Return the number of plays read.
    """
    others = {key for key, *_ in recount.owners(dict.fromkeys(days, ()))} - days
    read = recount.renew_days(days)
    recount.renew_days(others)
    changed |= days | others
    return read


def _delete(chosen: Selection, day: int, own: int | None) -> tuple[bool, Counter[int]]:
    """Delete the selected plays of a day, or the earliest if there are many.

    Return whether all are deleted, and the numbers of deleted plays by track.
    """
    first, end = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
    plays, values = PLAYS.format(chosen=chosen.condition), chosen.values
    rows = fetch(plays, first, end, *values, TAKEN_AT_ONCE + 1)
    if many := len(rows) > TAKEN_AT_ONCE:
        end = max(rows[-1][0], rows[0][0] + 1)
        rows = fetch(plays, first, end, *values, NO_LIMIT)
    run(DELETE.format(chosen=chosen.condition), first, end, *values)
    if own is not None:
        own_plays.give_back(day, own, sum(listener == own for _, _, listener in rows))
    return not many, Counter(track for _, track, _ in rows)


def _subtract(taken: Counter[int]) -> None:
    """Subtract the plays of tracks from their all-time totals."""
    with ranks.moving(taken):
        run_many(TOTALS, [(plays, track) for track, plays in sorted(taken.items())])
        among, ids = sql.in_list(taken)
        run(NO_TOTALS.format(among=among), ids)
