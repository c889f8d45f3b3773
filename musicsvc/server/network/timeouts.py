"""One deadline of one connection; moving it away, which every request does, costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Deadline:
    """Calls `missed` once the time that was set last has passed."""

    __slots__ = ("_at", "_loop", "_missed", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Let it pass so many seconds from now."""
        self._at = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._at, self._look)

    def clear(self) -> None:
        """Let it never pass; the timer stays, and finds nothing to do."""
        self._at = None

    def end(self) -> None:
        """Forget it for good."""
        self._at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if self._loop.time() < self._at:
            self._timer = self._loop.call_at(self._at, self._look)
            return
        self._at = None
        self._missed()
