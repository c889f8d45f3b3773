"""The interface of an open database. A unit of work is a function that the store runs on a thread in a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from musicsvc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Self

T = TypeVar("T")


@dataclass(slots=True)
class Workload:
    """The number of commits of a store, the number of committed units of work, and the seconds spent committing."""

    commits: int = 0
    units: int = 0
    seconds: float = 0.0

    def add(self, units: int, seconds: float) -> None:
        """Add one commit of this many units of work. Not thread-safe."""
        self.commits += 1
        self.units += units
        self.seconds += seconds


class Store(ABC):
    """An open database. `read` and `write` can be called on any thread."""

    url: str
    workload: Workload

    @abstractmethod
    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit of work on a reader connection, in one snapshot of the database."""

    @abstractmethod
    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit of work in one write transaction. The future is done after the commit or rollback.

        The unit of work runs again if its transaction was lost, so it must change nothing but the database.
        """

    def write_urgently(self, unit: Callable[[], T]) -> Future[T]:
        """Run a unit of work that must succeed even on a full disk, such as a revocation."""
        return self.write(unit)

    def reserve_space(self) -> str:
        """Reserve disk space for urgent units of work if the disk has enough free space. May block on the disk.

        Return the reason if this failed, else an empty string, also if the database is on another machine.
        """
        return ""

    @abstractmethod
    def changes(self) -> int | None:
        """Return a number that changes with every commit of any process; None if the database has no such number."""

    def waiting(self) -> tuple[int, int]:
        """Return how many units of work wait to read and how many to write; 0 if the store has no queue."""
        return 0, 0

    @abstractmethod
    def close(self) -> None:
        """Finish the running units of work and close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
    """Submit `work` to a thread pool of a store. Raises Unavailable if the store is closing or closed."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        raise Unavailable("The service is shutting down.") from None


def queued(pool: ThreadPoolExecutor) -> int:
    """Return the number of work items that wait for a thread of the pool."""
    return pool._work_queue.qsize()  # noqa: SLF001 - the standard library offers no public count
