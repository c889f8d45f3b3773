"""Delete the plays of an import, without its other rows."""

from collections.abc import Sequence
from functools import partial

from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection

DAYS = f"SELECT DISTINCT slot / {SLOTS_PER_DAY} FROM play WHERE import_id = ? ORDER BY 1"


def withdraw_import(store: Store, run: int) -> None:
    days: Sequence[int] = [day for (day,) in store.read(partial(fetch, DAYS, run)).result()]
    while days:
        days = store.write(partial(withdrawal.withdraw, Selection("import_id = ?", (run,)), days)).result().days
