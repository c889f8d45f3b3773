"""Background jobs that run repeatedly on the event loop until the server stops."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from musicsvc.errors import Failure
from musicsvc.server.logs.throttled_warning import ThrottledWarning

log = logging.getLogger("musicsvc")


class Periodic:
    """Runs a job repeatedly and logs failed runs. If runs raise Failure one after another, only the first is logged."""

    def __init__(
        self,
        name: str,
        job: Callable[[], Awaitable[float | None]],
        *,
        every: float,
        first: float | None = None,
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`every`: seconds between runs, unless the job returns a number. `first`: seconds before the first run."""
        self._name = name
        self._job = job
        self._every = every
        self._first = every if first is None else first
        self._finish = finish
        self._warning = ThrottledWarning()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.stopping = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        self._wake.set()

    async def stop(self) -> None:
        """Wait for the run in progress to end, then call the function `finish`."""
        self.stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._finish is not None:
            await self._attempt(self._finish)

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, or until the job is woken or stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _run(self) -> None:
        await self.sleep(self._first)
        while not self.stopping:
            self._wake.clear()
            await self.sleep(await self._attempt(self._job))

    async def _attempt(self, job: Callable[[], Awaitable[float | None]]) -> float:
        """Run the job once, and log an error. Return the seconds until the next run."""
        try:
            pause = await job()
        except Failure as failure:
            self._warning.warn("background job failed: %s: %s", self._name, failure.here)
        except Exception:
            log.exception("background job failed: %s: unhandled exception", self._name)
        else:
            if not self.stopping and self._warning.reset():  # a stopping job may have had nothing to do
                log.warning("background job recovered: %s", self._name)
            return self._every if pause is None else pause
        return self._every
