"""Create the rate limit counter that all processes with the same database share."""

from collections.abc import Callable
from pathlib import Path

from musicsvc.store.rate_limits.window import SharedHitCounter


def build(url: str, clock: Callable[[], int]) -> SharedHitCounter:
    """Return the counter for the database at `url`, not opened yet. `clock` returns the time in milliseconds."""
    if url.startswith("sqlite:///"):
        from musicsvc.store.rate_limits.sqlite import MachineHitCounter, file_of  # noqa: PLC0415 - loads its driver only if used

        return MachineHitCounter(file_of(Path(url.removeprefix("sqlite:///"))), clock)
    from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - the same

    return PostgresHitCounter(url)
