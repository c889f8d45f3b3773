"""The signals that stop a server, recorded from the moment at which it says that it listens."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class EarlySignal:
    """Records a stop signal that arrives before the final handlers are installed, which then check `received`."""

    def __init__(self) -> None:
        self.received = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._record)

    def _record(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True
