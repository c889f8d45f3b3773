"""Wait in a test until something holds that has no event."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 30.0  # seconds; on a busy machine everything takes longer


async def until(holds: Callable[[], object], seconds: float = PATIENCE) -> float:
    """Wait until the condition, asked on another thread, holds. Return the seconds it took; fail after `seconds`."""
    began = time.monotonic()
    while not await asyncio.to_thread(holds):
        assert time.monotonic() - began < seconds, "waited in vain"
        await asyncio.sleep(0.01)
    return time.monotonic() - began
