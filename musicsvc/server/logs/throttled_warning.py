"""Warnings about a lasting fault, logged once instead of each time the fault occurs."""

import logging
from collections.abc import Callable
from math import inf

log = logging.getLogger("musicsvc")


class ThrottledWarning:
    """A warning that is not logged again for a number of seconds, or until `reset` is called."""

    def __init__(self, seconds: float = inf, time: Callable[[], float] = lambda: 0.0) -> None:
        """`seconds`: how long repeats are suppressed; `time`: a monotonic clock, needed if `seconds` is finite."""
        self._seconds = seconds
        self._time = time
        self._silent_until = -inf

    def warn(self, message: str, *values: object) -> None:
        now = self._time()
        if now >= self._silent_until:
            self._silent_until = now + self._seconds
            log.warning(message, *values)

    def reset(self) -> bool:
        """Allow the next warning to be logged. Return whether repeats were being suppressed."""
        was_silent, self._silent_until = self._time() < self._silent_until, -inf
        return was_silent
