"""The thread of a process that checks and imports uploaded files, and undoes imports, as pages request."""

import asyncio
import logging
import threading
from time import monotonic

from musicsvc.clock import Clock
from musicsvc.errors import Failure
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks.uploads import Place
from musicsvc.store.importing.tasks.work import Worker

log = logging.getLogger("musicsvc")
POLL_SECONDS = 0.5  # the tasks are in the database, since another process may have answered the request
SETTLE_SECONDS = 60.0


class ImportWorker:
    def __init__(self, store: Store, place: Place, clock: Clock) -> None:
        self._stopping, self._ending = threading.Event(), threading.Event()
        self._worker = Worker(store, place, clock, self._stopping.is_set)
        self._warning = ThrottledWarning()
        self._defect: str | None = None  # the last unhandled exception, until a step succeeds
        self._settled: float | None = None
        self._thread = threading.Thread(target=self._run, name="importing")

    def start(self) -> None:
        self._thread.start()

    def settle_soon(self) -> None:
        """Look for tasks to settle at once."""
        self._settled = None

    async def stop(self) -> None:
        """Stop the task that runs, between two of its transactions, and wait for that."""
        self._stopping.set()
        await self.drain()

    async def drain(self) -> None:
        """Begin no more tasks, and wait until the one that runs is done."""
        self._ending.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._step()
                self._warning.reset()
                self._defect = None
            except (Failure, OSError) as error:
                self._warning.warn("imports of pages failed: %s", getattr(error, "here", error))
            except Exception as error:
                if repr(error) != self._defect:  # once, not at each attempt, such as while no thread can start
                    log.exception("imports of pages failed: unhandled exception")
                self._defect = repr(error)
            self._ending.wait(POLL_SECONDS)

    def _step(self) -> None:
        if self._settled is None or monotonic() - self._settled > SETTLE_SECONDS:
            self._worker.settle()
            self._settled = monotonic()
        while not self._ending.is_set() and self._worker.work():
            pass
