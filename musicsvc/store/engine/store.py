"""The interface of an open database: a unit of work is a function, run whole on a store thread in one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from musicsvc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Self

    from musicsvc.store.engine.workload import Workload

T = TypeVar("T")


class Store(ABC):
    """A database that is open; `read` and `write` take units from any thread."""

    url: str
    workload: Workload

    @abstractmethod
    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a reader connection, in one snapshot."""

    @abstractmethod
    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit in one write transaction; the future is done after its commit, or after its rollback.

        A unit may run more than once, when the transaction around it was lost: it changes nothing but the database.
        """

    def write_urgently(self, unit: Callable[[], T]) -> Future[T]:
        """The same for what must not wait until a full disk has room again: revocations."""
        return self.write(unit)

    def keep_room(self) -> str:
        """Keep room on the disk for what is urgent, where there is any to spare; it may wait for the disk.

        What keeps us from it; empty where there is that room, or the disk is not ours.
        """
        return ""

    @abstractmethod
    def changes(self) -> int | None:
        """A number that moves whenever anybody commits a change; None where the store has none."""

    def waiting(self) -> tuple[int, int]:
        """How many units wait to read, and how many to write; none where they wait in another store."""
        return 0, 0

    @abstractmethod
    def close(self) -> None:
        """Finish what is under way, then close every connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
    """Hand work to the threads of a store; raises Unavailable once they are closing."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        raise Unavailable("The service is shutting down.") from None


def queued(pool: ThreadPoolExecutor) -> int:
    """How much work waits for a thread of the pool."""
    return pool._work_queue.qsize()  # noqa: SLF001 - the library counts, and tells in no other way
