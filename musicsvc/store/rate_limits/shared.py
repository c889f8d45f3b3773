"""Which way of counting with other processes belongs to a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.rate_limits.window import SharedQuotas


def of(url: str, clock: Callable[[], int]) -> SharedQuotas:
    """The quotas of the store at this address, not open yet; `clock` is the machine's, in milliseconds."""
    if url.startswith("sqlite:///"):
        from musicsvc.store.rate_limits.sqlite import MachineQuotas, place  # noqa: PLC0415 - a driver is loaded where needed

        return MachineQuotas(place(Path(url.removeprefix("sqlite:///"))), clock)
    from musicsvc.store.rate_limits.postgres import PostgresQuotas  # noqa: PLC0415

    return PostgresQuotas(url)
