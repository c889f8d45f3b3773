"""Draws covers, avatars and PDF documents in processes of the limited program, which end when nothing is drawn."""

import asyncio
import logging
import threading
from base64 import b64decode
from contextlib import suppress
from typing import Any

from musicsvc.clock import Clock
from musicsvc.errors import Overloaded
from musicsvc.limited import Pause
from musicsvc.limited.process import Broken, Limited

log = logging.getLogger("musicsvc")
MODULE = "musicsvc.reports.drawing"
IDLE = 30.0  # seconds for which a process that draws nothing is kept
FAILED = "This could not be drawn. Try again in a second."


class Drawer:
    """Has a process for each drawing that is under way at once. Its methods may be called on any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._resting: list[tuple[float, Limited]] = []  # and since when; the last one is used first
        self._drawing = 0  # processes

    def wake(self) -> None:
        """Begin a process, if there is none, for a drawing that will be wanted soon."""
        with self._lock, suppress(OSError):
            if not self._resting and not self._drawing:
                self._resting.append((self._clock.monotonic(), Limited(MODULE)))

    def draw(self, kind: str, *arguments: Any) -> bytes:
        """Return a drawing of a kind that `reports/drawing.py` knows. Raises Overloaded if its process fails."""
        process = self._take()
        drawn = None
        try:
            process = process or Limited(MODULE)
            [drawn] = (each for each in process.ask(kind, *arguments) if not isinstance(each, Pause))
        except (Broken, OSError) as error:
            log.error("the process that draws a %s failed (%s)", kind, error)  # noqa: TRY400 - a line, no trace
            raise Overloaded(FAILED) from None
        finally:
            self._give_back(process, failed=drawn is None)
        return b64decode(drawn)

    def _take(self) -> Limited | None:
        """Return a process that draws nothing, if there is one."""
        with self._lock:
            self._drawing += 1
            _, process = self._resting.pop() if self._resting else (0.0, None)
        if process is not None and process.ended:
            process.close()
            return None
        return process

    def _give_back(self, process: Limited | None, *, failed: bool) -> None:
        if process is not None and failed:
            process.close()
        with self._lock:
            self._drawing -= 1
            if process is not None and not failed:
                self._resting.append((self._clock.monotonic(), process))

    async def end_idle(self) -> None:
        """End the processes that have drawn nothing for IDLE seconds."""
        await asyncio.to_thread(self.close, IDLE)

    def close(self, idle: float = 0.0) -> None:
        """End the processes that have drawn nothing for `idle` seconds."""
        latest = self._clock.monotonic() - idle
        with self._lock:
            ended = [process for since, process in self._resting if since <= latest]
            self._resting = [each for each in self._resting if each[0] > latest]
        for process in ended:
            process.close()
