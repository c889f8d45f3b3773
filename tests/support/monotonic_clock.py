"""A clock for code that uses monotonic time."""

import time

from musicsvc.clock import MovableClock
from tests.conftest import NOW


class StoppedClock(MovableClock):
    """Clock whose two times change only when the test moves them; with `runs` the monotonic one runs."""

    def __init__(self) -> None:
        super().__init__(NOW, speed=0)
        self.seconds = 5000.0
        self.runs = False

    def monotonic(self) -> float:
        return time.monotonic() if self.runs else self.seconds
