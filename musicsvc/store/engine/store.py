"""The interface of an open database. A unit of work is a function that runs on a store thread, in one transaction."""

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
    """The commits of a store so far, the units in them, and the seconds spent in committing."""

    commits: int = 0
    units: int = 0
    seconds: float = 0.0

    def add(self, units: int, seconds: float) -> None:
        """Add one commit. Not thread-safe."""
        self.commits += 1
        self.units += units
        self.seconds += seconds


class Store(ABC):
    """An open database; `read` and `write` accept units from any thread."""

    url: str
    workload: Workload

    @abstractmethod
    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a reader connection, in one snapshot."""

    @abstractmethod
    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit in one write transaction; the future is done after its commit or rollback.

        A unit may run more than once if its transaction was lost, so it must change nothing but the database.
        """

    def write_urgently(self, unit: Callable[[], T]) -> Future[T]:
        """Write a unit that must succeed even on a full disk, such as a revocation."""
        return self.write(unit)

    def reserve_space(self) -> str:
        """Reserve disk space for urgent units if there is enough; may block on the disk.

        Return the reason why there is none, empty if there is, or if the disk is not this machine's.
        """
        return ""

    @abstractmethod
    def changes(self) -> int | None:
        """Return a number that changes with every commit of any process; None if the database has none."""

    def waiting(self) -> tuple[int, int]:
        """Return how many units wait to read and to write; 0 if they wait in another store."""
        return 0, 0

    @abstractmethod
    def close(self) -> None:
        """Finish the running units and close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
    """Submit work to the threads of a store. Raises Unavailable after the store began to close."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        raise Unavailable("The service is shutting down.") from None


def queued(pool: ThreadPoolExecutor) -> int:
    """Return how many work items wait for a thread of the pool."""
    return pool._work_queue.qsize()  # noqa: SLF001 - the standard library offers no public count
