"""Deletion of old plays (setting `plays.keep_days`). Rollups are not deleted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.periods import SLOTS_PER_DAY, day_of
from musicsvc.store.plays.rollups import tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store

OLDEST = "SELECT min(slot) FROM play"


def prune(store: Store, keep_days: int, *, now: int, on_progress: Callable[[int, int], None]) -> tuple[int, int]:
    """Delete the plays older than `keep_days` days; return the number of deleted plays and the first day that is kept.

    `on_progress` gets the number of finished days and the total.
    """
    first = day_of(now) - keep_days
    oldest = store.write(partial(_begin, first)).result()
    deleted = 0
    for day in range(oldest, first):
        deleted += store.write(partial(_delete, day)).result()
        on_progress(day + 1 - oldest, first - oldest)
    return deleted, first


def _begin(first: int) -> int:
    """Store the first day to keep; earlier plays are refused from now on. Return the day of the oldest play."""
    tables.lock()
    run("UPDATE play_mark SET kept_from = ? WHERE kept_from < ?", first, first)
    ((slot,),) = fetch(OLDEST)
    return first if slot is None else int(slot) // SLOTS_PER_DAY


def _delete(day: int) -> int:
    slots = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
    ((count,),) = fetch("SELECT count(*) FROM play WHERE slot >= ? AND slot < ?", *slots)
    run("DELETE FROM play WHERE slot >= ? AND slot < ?", *slots)
    return int(count)
