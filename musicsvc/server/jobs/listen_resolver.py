"""Counts listens that waited for their track, and deletes old ones."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from musicsvc.clock import Clock
from musicsvc.server.freshness import Freshness, Source
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import recorded
from musicsvc.store.listens import resolving


@dataclass
class ListenResolver:
    store: Store
    clock: Clock
    freshness: Freshness
    is_stopping: Callable[[], bool]
    _nothing_due: Source | None = None

    async def resolve(self) -> None:
        """Count the listens whose track exists now, until none is left or the server stops.

        Unless one of the tables has changed since nothing was due, the database is not asked.
        """
        while not self.is_stopping():
            stamp = self.freshness.now()
            if stamp is not None and self._nothing_due is not None and self.freshness.holds(self._nothing_due):
                return
            due, tables = await asyncio.wrap_future(self.store.read(partial(recorded, resolving.is_due)))
            if not due:
                self._nothing_due = stamp and Source(stamp, tables)
                return
            await self._write(resolving.advance)

    async def clean(self) -> None:
        await self._write(resolving.clean)

    async def _write(self, unit: Callable[[int], object]) -> None:
        work = partial(unit, self.clock.now())
        await asyncio.wrap_future(self.store.write(work, counters_only=True))
