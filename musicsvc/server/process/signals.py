"""The signals that end a server, from the moment on at which it is said to listen."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

ENDING = {signal.SIGTERM, signal.SIGINT}


class Early:
    """Notes one that comes before anybody heeds it; whoever takes over asks `came` afterwards."""

    def __init__(self) -> None:
        self.came = False
        for number in ENDING:
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
