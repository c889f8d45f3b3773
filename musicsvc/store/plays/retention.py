"""Delete old plays (setting `plays.keep_days`). Their figures are kept."""

from collections.abc import Callable
from functools import partial

from peewee import fn

from musicsvc.store.engine.store import Store
from musicsvc.store.models import DroppedPlay, OwnPlayDay, Play, PlayProgress
from musicsvc.store.plays import counting
from musicsvc.store.plays.periods import SLOTS_PER_DAY, day_of, to_date
from musicsvc.store.security import security_events
from musicsvc.wording import quantity


def prune(store: Store, keep_days: int, *, now: int, on_progress: Callable[[int, int], None]) -> tuple[int, int]:
    """Delete plays older than `keep_days`. Return (number of deleted plays, first day kept as days since 1970-01-01).

    The first transaction, which also makes the service refuse older plays, logs it if there are plays to delete.

    `on_progress` is called with the number of finished days and the number of all days.
    """
    first = max(0, day_of(now) - keep_days)
    count = store.read(Play.select().where(Play.slot < first * SLOTS_PER_DAY).count).result()
    oldest = store.write(partial(_begin, first, count, now)).result()
    deleted = 0
    for day in range(oldest, first):
        deleted += store.write(partial(_delete, day)).result()
        on_progress(day + 1 - oldest, first - oldest)
    return deleted, first


def _begin(first: int, count: int, now: int) -> int:
    """Store that plays before the day `first` are refused. Return the oldest play's day, or `first` without plays.

    `count`: the number of plays before `first`, for the event.
    """
    counting.lock()
    if count:
        about = f"{quantity(count, 'play')} before {to_date(first)}"
        security_events.add("plays.pruned", reason=about, now=now, actor="cli")
    PlayProgress.update(kept_from=first).where(PlayProgress.kept_from < first).execute()
    DroppedPlay.delete().where(DroppedPlay.slot < first * SLOTS_PER_DAY).execute()  # repeats of them are refused now
    slot = Play.select(fn.MIN(Play.slot)).scalar()
    return first if slot is None else int(slot) // SLOTS_PER_DAY


def _delete(day: int) -> int:
    of_day = Play.slot >= day * SLOTS_PER_DAY, Play.slot < (day + 1) * SLOTS_PER_DAY
    deleted: int = Play.delete().where(*of_day).execute()
    OwnPlayDay.delete().where(OwnPlayDay.day == day).execute()
    return deleted
