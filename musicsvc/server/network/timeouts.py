"""A deadline that is cheap to move, because every request moves the deadline of its connection."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls `on_timeout` once the deadline has passed, unless it is moved or cleared before."""

    __slots__ = ("_at", "_loop", "_on_timeout", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[], None]) -> None:
        self._loop = loop
        self._on_timeout = on_timeout
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self._at = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._at, self._check)

    def clear(self) -> None:
        """Clear the deadline. The timer keeps running, because cancelling it costs more."""
        self._at = None

    def end(self) -> None:
        """Clear the deadline and cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if self._loop.time() < self._at:
            self._timer = self._loop.call_at(self._at, self._check)
            return
        self._on_timeout()
