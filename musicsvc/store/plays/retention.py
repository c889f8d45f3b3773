"""Old plays are deleted, what they were counted in stays (setting `plays.keep_days`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.periods import day_of
from musicsvc.store.plays.rollups import daily
from musicsvc.store.plays.rollups.subjects import SLOTS_A_DAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store

OLDEST = "SELECT min(slot) FROM play"


def prune(store: Store, keep_days: int, *, now: int, told: Callable[[int, int], None]) -> tuple[int, int]:
    """Delete the plays before the last so many days; how many went, and the first day that is kept.

    `told` hears how many days of how many are through.
    """
    first = day_of(now) - keep_days
    oldest = store.write(partial(_begin, first)).result()
    gone = 0
    for day in range(oldest, first):
        gone += store.write(partial(_delete, day)).result()
        told(day + 1 - oldest, first - oldest)
    return gone, first


def _begin(first: int) -> int:
    """Note what is kept, before anything goes, so that no repeat of a deleted play is taken; the oldest day."""
    daily.lock()
    run("UPDATE play_mark SET kept_from = ? WHERE kept_from < ?", first, first)
    ((slot,),) = fetch(OLDEST)
    return first if slot is None else int(slot) // SLOTS_A_DAY


def _delete(day: int) -> int:
    span = day * SLOTS_A_DAY, (day + 1) * SLOTS_A_DAY
    ((count,),) = fetch("SELECT count(*) FROM play WHERE slot >= ? AND slot < ?", *span)
    run("DELETE FROM play WHERE slot >= ? AND slot < ?", *span)
    return int(count)
