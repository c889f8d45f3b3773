"""Decides whether something that was read from the database is still current. All caches of the server use it.

A cache keeps with each entry its stamp and the tables that it was read from:

    stamp = freshness.now()                     # on the event loop, before the read begins
    value, tables = await ... store.read(lambda: recorded(unit))     # `recorded` of store/engine/tables.py
    ...
    source = Source(stamp, tables)
    if freshness.holds(source): ...             # later, in any thread: `value` is what a read would return

An entry made of other entries takes the oldest of their stamps and all of their tables.
"""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.errors import Unavailable
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import counters

COUNTERS_SECONDS = 4.0  # responses may show counters that are up to 5 seconds old


class Stamp(NamedTuple):
    """A logical time, ordered by the number of database changes seen so far, then by the event loop's time."""

    number: int
    at: float


@dataclass(slots=True, eq=False)
class Source:
    """The time before something was read from the database, and the tables that it was read from."""

    stamp: Stamp
    tables: frozenset[str]


class Freshness:
    """Detects changes that any process makes to the database. Checks at most once per turn of the event loop.

    The check runs after all requests that the turn answers were sent by their clients, so it sees every commit that was
    acknowledged before.

    - A change of a table invalidates at once all values read from the table.
    - A change of the table's counters, such as plays, invalidates values from the table that are a few seconds old.
    - A change of unknown tables, such as one by another program, invalidates all values that are a few seconds old.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._in_place = True
        self._is_read = False
        self._stamp: Stamp | None = None
        self._number = 0
        self._changes: Hashable | None = None
        self._versions: Mapping[str, Hashable] = {}
        self._changed: dict[str, int] = {}  # for each table, the number of the change that was its last
        self._checked: Hashable | None = None
        self._others: Hashable | None = None
        self._changed_by_others = 0  # the number of the last change that may name no table

    def now(self) -> Stamp | None:
        """Return the stamp for this turn of the event loop, or None if nothing may be cached.

        Call this on the event loop. Raises Unavailable if the database cannot be read.
        """
        if not self._is_read:
            loop = asyncio.get_running_loop()
            self._stamp = self._read(loop.time()) if self._in_place else None
            self._is_read = True
            loop.call_soon(self._forget)
        return self._stamp

    def holds(self, source: Source, *, counted: bool = True) -> bool:
        """Return whether a value from this source was still valid when `now` was last called.

        The last call of `now` must have returned a stamp, not None.
        `counted`: whether changes of counters, such as plays, invalidate the value too.
        """
        number, at = source.stamp
        if number == self._number:
            return True
        stamp, changed = self._stamp, self._changed
        if stamp is None:
            return False
        for table in source.tables:
            if changed.get(table, 0) > number:
                return False
        if self._changed_by_others > number or (
            counted and any(changed.get(counters(table), 0) > number for table in source.tables)
        ):
            return stamp.at - at < COUNTERS_SECONDS
        source.stamp = Stamp(stamp.number, at)  # nothing has changed until then, so it is not compared again
        return True

    def _read(self, at: float) -> Stamp | None:
        changes = self._store.changes()
        if changes is None:
            return None
        if changes != self._changes:
            versions = self._store.table_versions()
            number = self._number + 1
            different = versions.items() - self._versions.items()
            self._changed |= {table: number for table, _ in different}
            self._changes, self._versions, self._number = changes, versions, number
        return Stamp(self._number, at)

    async def check(self) -> None:
        """Check whether the database file is in its place. If it was moved or replaced, nothing may be cached."""
        self._in_place = await asyncio.to_thread(self._store.in_place)

    async def check_others(self) -> None:
        """Notice changes by other programs, which do not say which tables they change. Call this every second."""
        others: Hashable
        changes = self._store.changes()
        if changes is None or changes != self._checked:
            try:
                others = await asyncio.to_thread(self._store.others)
            except Unavailable:
                others = object()  # unknown, so different from any other
            if others != self._others:
                self._number += 1
                self._changed_by_others = self._number
            self._checked, self._others = changes, others

    def _forget(self) -> None:
        self._is_read = False
