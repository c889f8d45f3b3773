"""Queued units of work, and the limits of their waits."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Generic, TypeVar

from musicsvc.store.engine.postgres.database import transaction_settings

T = TypeVar("T")
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


@dataclass(slots=True, eq=False)
class Task(Generic[T]):
    """A queued unit of work, its future, and the limits of its waits."""

    unit: Callable[[], T]
    begin: str  # READ or WRITE
    within: float | None
    versions: bool = False  # whether to increment the version numbers of changed tables
    patient: bool = True  # it may wait for a lock on a thread for such units
    future: Future[T] = field(default_factory=Future)
    queued: float = field(default_factory=time.monotonic)
    locked_until: float | None = None  # the end of waiting for locks, on a thread for such units

    @property
    def deadline(self) -> float:
        """The time by which the unit must have ended, or begun again if it has no deadline."""
        return inf if self.within is None else self.queued + self.within

    def begin_statement(self, lock_seconds: float) -> str:
        """Return the statement that begins the transaction. Its timeouts are rounded, so that few texts exist."""
        if self.locked_until is not None:
            lock_seconds = max(0.1, round(self.locked_until - time.monotonic(), 1))
        left = 0 if self.within is None else max(1, ceil(self.deadline - time.monotonic()))
        return f"{self.begin}; {transaction_settings(lock_seconds, left)}"
