"""Drawings that fail, for the limited program: tests name this module in place of `musicsvc.reports.drawing`."""

import fcntl
import os
import time
from base64 import b64encode
from collections.abc import Iterator
from typing import Any


def parts(kind: str, *arguments: Any) -> Iterator[str]:
    """Yield the arguments as text, unless the kind is that of a fault."""
    if kind == "greedy":
        bytearray(2 * 1024**3)
    if kind == "crash":
        os.abort()
    if kind == "exit":
        os._exit(3)
    if kind == "slow":
        time.sleep(600)
    yield b64encode(str(arguments).encode()).decode()
    if kind == "late":  # as where other programs have the processor
        time.sleep(0.15)
        set_flags = fcntl.fcntl

        def late(*given: Any) -> Any:
            time.sleep(0.15)
            return set_flags(*given)

        vars(fcntl)["fcntl"] = late
