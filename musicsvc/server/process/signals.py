"""Record stop signals that arrive before the event loop or the supervisor handles signals."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class EarlySignal:
    """Handles stop signals while the server starts: sets `received` if one arrives."""

    def __init__(self) -> None:
        self.received = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._record)

    def _record(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True
