"""The interface of an open database, which runs functions in transactions on its own threads."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self, TypeVar

from musicsvc.errors import Unavailable
from musicsvc.store.engine import own_writes

T = TypeVar("T")
CLOSING = "The service is shutting down."
NO_THREAD = "The system starts no further thread. Raise the limits of memory and of processes."


@dataclass(slots=True)
class Workload:
    """Totals of write transactions: `commits`, `units` (functions that ran in them) and `seconds` spent in COMMIT."""

    commits: int = 0
    units: int = 0
    seconds: float = 0.0

    def add(self, units: int, seconds: float) -> None:
        """Count one commit, which took `seconds`, of a transaction in which `units` functions ran. Not thread-safe."""
        self.commits += 1
        self.units += units
        self.seconds += seconds


class Replica(ABC):
    """A read replica. `reads`: how many reads it has answered; `fallbacks`: how many the primary has, by reason."""

    reads: int
    fallbacks: dict[str, int]

    @property
    @abstractmethod
    def lag(self) -> float:
        """The seconds since the last time until which the replica is known to have every commit."""

    @abstractmethod
    def read(
        self, unit: Callable[[], T], check: Callable[[], object], account: int | None, within: float | None
    ) -> Future[T]:
        """Do what `Store.read_figures` says, on the replica or on the primary."""

    @abstractmethod
    def close(self) -> None:
        """Wait for the running reads, then close all connections."""


@dataclass(slots=True)
class ConnectionUse:
    """Connections of this process to a database server: open ones and those in use now, and waits for a free one."""

    budget: int
    open: int = 0
    in_use: int = 0
    waits: int = 0
    wait_seconds: float = 0.0


class Store(ABC):
    """An open database. It runs functions in transactions on its own threads. Any thread may call its methods."""

    url: str
    workload: Workload
    parallel_reads: int = 1  # small reads that run best at the same time
    lag: float = 0.0  # seconds for which other processes may take what they have read for current, after a commit
    replica: Replica | None = None
    connections: ConnectionUse | None = None  # on PostgreSQL

    @abstractmethod
    def read(self, unit: Callable[[], T], *, within: float | None = None, patient: bool = True) -> Future[T]:
        """Call `unit` in a read-only transaction on one snapshot of the database. Return the future of the result.

        `within`: on PostgreSQL, seconds after which it fails with Unavailable, also if it has not begun by then. A unit
        without such a limit takes as long as it needs, if the server responds. `patient`: it may wait for locks.
        """

    @abstractmethod
    def write(
        self,
        unit: Callable[[], T],
        *,
        urgent: bool = False,
        counters_only: bool = False,
        within: float | None = None,
    ) -> Future[T]:
        """Call `unit` in a write transaction. The future is done after the commit or rollback.

        `unit` may be called again if its transaction fails, so it must change nothing but the database.
        `urgent`: it precedes other work; on a full disk, it uses reserved disk space, on PostgreSQL a reserved
        connection, so that revocations always succeed. `counters_only`: it changes only counters and times of use;
        responses that show them may be cached for some seconds longer.
        `within`: as for `read`.
        """

    def write_on_loop(
        self, unit: Callable[[], T], *, counters_only: bool = False, within: float | None = None
    ) -> asyncio.Future[T]:
        """Do the same as `write` at a lower cost. Call this on a running event loop."""
        return asyncio.wrap_future(self.write(unit, counters_only=counters_only, within=within))

    def probe(self, unit: Callable[[], T], *, within: float) -> Future[T]:
        """Call `unit` as `read` does, for a health check. On PostgreSQL, it waits for no other unit.

        Fails with ReadOnly if the database cannot be written, which is tried at most once a second.
        """
        return self.read(unit, within=within)

    def read_figures(
        self,
        unit: Callable[[], T],
        *,
        check: Callable[[], object],
        account: int | None,
        within: float | None = None,
    ) -> Future[T]:
        """Do the same as `read`, on the read replica if there is one: it may be up to 5 seconds behind.

        `check`: is called on the primary before, and raises what must be refused. `account`: the caller, whose own
        writes `unit` sees.
        """
        if self.replica is None:
            return self.read(unit, within=within)
        return self.replica.read(unit, check, account, within)

    def counted(self, unit: Callable[[], T], account: int | None) -> Callable[[], T]:
        """Return a unit for `write` that does the same for this account, so that `read_figures` knows of it."""
        return unit if self.replica is None or account is None else own_writes.marked(unit, account)

    def reserve_space(self) -> str:
        """Reserve disk space for urgent writes. Return an error message, or an empty string. May block."""
        return ""

    @abstractmethod
    def changes(self) -> Hashable | None:
        """Return a value that differs after every commit of any process, or None while it is unknown. Never blocks.

        On PostgreSQL, commits of other machines, of counters and of other programs show within a second.
        """

    def table_versions(self) -> Mapping[str, Hashable]:
        """Return a value for each table, which changes with each commit that changes the table.

        If a commit changes only counters of the table, the value for `counters(table)` changes instead.
        """
        return {}

    def others(self) -> Hashable:
        """Return a value that differs after commits that the values of `table_versions` may not show. May block.

        On SQLite, the value differs after each commit of another process, including other programs. On PostgreSQL, the
        value differs after every commit.
        """
        return object()

    def in_place(self) -> bool:
        """Return False if the database was moved or replaced since it was opened. May block on the disk."""
        return True

    def beside(self) -> "Store":
        """Return a store with threads of its own and, on PostgreSQL, the same connections. Close it before this one."""
        raise NotImplementedError

    def overwritten(self, within: float) -> bool:  # noqa: ARG002 - nothing to wait for
        """Return whether nothing of erased rows (`sql.erase_for_good`) is left in the files.

        Waits at most `within` seconds. PostgreSQL overwrites them when it vacuums the tables.
        """
        return True

    def waiting(self) -> tuple[int, int]:
        """Return the number of queued reads and the number of queued writes."""
        return 0, 0

    @abstractmethod
    def close(self) -> None:
        """Wait for the running transactions, then close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def enqueue(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
    """Submit `work` to a thread pool of a store. Raises Unavailable if the store is closing or closed.

    Raises Unavailable, too, if the system starts no thread for it. Then the pool still does it as soon as it has one.
    """
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        raise (Unavailable(CLOSING) if pool._shutdown else Unavailable(here=NO_THREAD)) from None  # noqa: SLF001 - the same


def queued(pool: ThreadPoolExecutor) -> int:
    """Return the number of tasks that wait for a thread of the pool."""
    return pool._work_queue.qsize()  # noqa: SLF001 - the standard library offers no public count
