"""Draws covers, avatars and PDF documents in processes of the limited program, which end when nothing is drawn."""

import asyncio
import logging
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from musicsvc.clock import Clock
from musicsvc.errors import Failure, Overloaded
from musicsvc.limited.process import Broken, Limited, Pause

log = logging.getLogger("musicsvc")
MODULE = "musicsvc.reports.drawing"
IDLE = 30.0  # seconds for which a process that draws nothing is kept
FAILED = "This could not be drawn. Try again in a second."


class Resting(NamedTuple):
    """A process that draws nothing."""

    process: Limited
    since: float


class Drawer:
    """Has a process for each drawing that is under way at once. Its methods may be called on any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._resting: list[Resting] = []  # the last one is used first
        self._drawing = 0  # processes

    def wake(self) -> None:
        """Begin a process, if there is none, for a drawing that will be wanted soon."""
        with self._lock, suppress(OSError):
            if not self._resting and not self._drawing:
                self._rest(Limited(MODULE))

    def draw(self, kind: str, *arguments: Any) -> bytes:
        """Return a drawing of a kind that `reports/drawing.py` knows. Raises Overloaded if its process ends.

        Raises RuntimeError for any other fault.
        """
        try:
            with self._process() as process:
                [drawn] = (each for each in process.ask(kind, *arguments) if not isinstance(each, Pause))
        except Failure as failure:
            raise RuntimeError(failure.message) from None
        except (Broken, OSError) as error:
            log.error("the process that draws a %s failed (%s)", kind, error)  # noqa: TRY400 - a line, no trace
            raise Overloaded(FAILED) from None
        return b64decode(drawn)

    @contextmanager
    def _process(self) -> Iterator[Limited]:
        """Yield a process that draws nothing, and end it if it fails."""
        with self._lock:
            self._drawing += 1
            process = self._resting.pop().process if self._resting else None
        try:
            if process is not None and process.ended:
                process.close()
                process = None
            process = process or Limited(MODULE)
            yield process
        except BaseException:
            if process is not None:
                process.close()
            raise
        else:
            with self._lock:
                self._rest(process)
        finally:
            with self._lock:
                self._drawing -= 1

    def _rest(self, process: Limited) -> None:
        self._resting.append(Resting(process, self._clock.monotonic()))

    async def end_idle(self) -> None:
        """End the processes that have drawn nothing for IDLE seconds."""
        await asyncio.to_thread(self.close, IDLE)

    def close(self, idle: float = 0.0) -> None:
        """End the processes that have drawn nothing for so many seconds."""
        latest = self._clock.monotonic() - idle
        with self._lock:
            ended = [each for each in self._resting if each.since <= latest]
            self._resting = [each for each in self._resting if each.since > latest]
        for each in ended:
            each.process.close()
