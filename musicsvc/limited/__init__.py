"""The limited program: does in a process of its own what may take too much memory or time, or crash (`program.py`)."""

from enum import Enum

PIECE = 1024 * 1024  # bytes between two pauses


class Pause(Enum):
    """A place between two parts at which the caller looks after other things.

    FULL: about PIECE bytes were read since the last one, the same ones each time. IDLE: the next part takes a while.
    """

    FULL = "full"
    IDLE = "idle"
