"""The connections of a process to a PostgreSQL database: one for each running unit of work, at most a budget of them.

Threads take a connection for a unit and give it back. While all are in use, they queue; urgent work (revocation,
health, rate limits, the watch for changes) comes first, and one connection is reserved for it. If the server accepts no
further connection, for example because of its `max_connections`, the process goes on with those that it has.
"""

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
from psycopg.errors import ConnectionTimeout
from psycopg.pq import TransactionStatus

from musicsvc.errors import Unavailable
from musicsvc.store.engine.postgres import waiting
from musicsvc.store.engine.postgres.waiting import NoResponse
from musicsvc.store.engine.store import ConnectionUse

log = logging.getLogger("musicsvc")
Connection = psycopg.Connection[object]
CONNECTIONS = 10  # the most of a process, by default
RESERVED = 1
IDLE_SECONDS = 5.0  # after which an unused connection is closed
REFUSED_SECONDS = 1.0  # until the server is asked for a further connection again
RETRY_SECONDS = 0.2
PATIENCE_SECONDS = 10.0  # the longest wait for a free connection
# PostgreSQL and pgbouncer tell by the text alone that they accept no further connection.
FULL = re.compile(r"too many (clients|connections)|connection slots are reserved|no more connections allowed")


@dataclass(eq=False, slots=True)
class Waiter:
    """A thread that waits for a connection. `connection`: an idle one that it gets, or None: it opens one."""

    granted: threading.Event = field(default_factory=threading.Event)
    connection: Connection | None = None


class Connections:
    def __init__(self, connect: Callable[[], Connection], budget: int) -> None:
        """`connect`: opens a connection."""
        self.use = ConnectionUse(budget)
        self.lost = 0  # times that connections were lost
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Connection]] = []  # the one used last at the end
        self._taken: dict[bool, int] = {True: 0, False: 0}  # by urgency
        self._waiting: dict[bool, deque[Waiter]] = {True: deque(), False: deque()}
        self._refused = float("-inf")  # when the server last accepted no further connection
        self._accepted = budget  # what it accepted then
        self._closed = False
        self._announced = False

    @property
    def has_reserve(self) -> bool:
        """Whether one connection is reserved for urgent work."""
        return self._limit() > RESERVED

    def take(self, *, urgent: bool) -> Connection:
        """Return a connection, for the caller alone until `give_back`.

        Raises Unavailable if none gets free in time, or the driver's error if the server cannot be reached.
        """
        end = min(time.monotonic() + PATIENCE_SECONDS, waiting.deadline())
        while True:
            connection = self._wait(end, urgent=urgent)
            if connection is not None:
                return connection
            try:
                opened = self._connect()
            except BaseException as error:
                others = self._refuse(error, urgent=urgent)
                if time.monotonic() > end or not (others or _is_full(error)):
                    raise
            else:
                self._announced = False
                return opened
            if not others:
                self._announce()
                time.sleep(RETRY_SECONDS)

    def _announce(self) -> None:
        """Log that threads wait for a first connection, once until there is one."""
        with self._lock:
            announced, self._announced = self._announced, True
        if not announced:
            log.warning("waiting up to 10 s for a free connection to the database")

    def give_back(self, connection: Connection, *, urgent: bool) -> None:
        """Let others use the connection. It is closed if it is broken or has an open transaction."""
        usable = not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
        with self._lock:
            is_kept = usable and not self._closed
            unused = self._leave(connection if is_kept else None, urgent=urgent)
            if connection.closed:  # then the others may be lost too
                self.lost += 1
                unused = self._empty()
            self._grant()
        for each in unused if is_kept else [*unused, connection]:
            each.close()

    def close(self) -> None:
        """Close the idle connections. Those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
            idle = self._empty()
        for connection in idle:
            connection.close()

    def _wait(self, end: float, *, urgent: bool) -> Connection | None:
        """Wait for a free place. Return an idle connection, or None: the caller must open one."""
        waiter = Waiter()
        with self._lock:
            self._waiting[urgent].append(waiter)
            self._grant()
        if waiter.granted.is_set():
            return waiter.connection
        began = time.monotonic()
        in_time = waiter.granted.wait(max(0.0, end - began))
        with self._lock:
            self.use.waits += 1
            self.use.wait_seconds += time.monotonic() - began
            if in_time or waiter.granted.is_set():
                return waiter.connection
            self._waiting[urgent].remove(waiter)
        raise Unavailable(
            here=f"All {self._limit()} connections to the database are in use (setting database.connections)."
        )

    def _limit(self) -> int:
        """Return how many connections the process may use now."""
        recently = time.monotonic() - self._refused < REFUSED_SECONDS
        return self._accepted if recently else self.use.budget

    def _has_room(self, *, urgent: bool) -> bool:
        limit = self._limit()
        if self._taken[True] + self._taken[False] >= limit:
            return False
        return urgent or self._taken[False] < max(1, limit - RESERVED)

    def _grant(self) -> None:
        """Give free places to the threads that wait, in their order. Needs the lock."""
        for urgent in (True, False):
            while self._waiting[urgent] and self._has_room(urgent=urgent):
                waiter = self._waiting[urgent].popleft()
                self._taken[urgent] += 1
                if self._idle:
                    waiter.connection = self._idle.pop()[1]
                waiter.granted.set()
        self._count()

    def _leave(self, connection: Connection | None, *, urgent: bool) -> list[Connection]:
        """Free a place, and keep its connection. Return idle connections that must be closed. Needs the lock."""
        now = time.monotonic()
        self._taken[urgent] -= 1
        unused = []
        if connection is not None:
            self._idle.append((now, connection))
            while now - self._idle[0][0] > IDLE_SECONDS:
                unused.append(self._idle.pop(0)[1])
        return unused

    def _empty(self) -> list[Connection]:
        """Remove all idle connections and return them. Needs the lock."""
        idle = [connection for _, connection in self._idle]
        self._idle.clear()
        self._refused = float("-inf")
        return idle

    def _count(self) -> None:
        self.use.in_use = self._taken[True] + self._taken[False]
        self.use.open = self.use.in_use + len(self._idle)

    def _refuse(self, error: BaseException, *, urgent: bool) -> int:
        """Free the place of a connection that could not be opened. Return the number of others to wait for."""
        with self._lock:
            self._leave(None, urgent=urgent)
            others = self._taken[True] + self._taken[False] + len(self._idle)
            if not isinstance(error, psycopg.OperationalError) or isinstance(error, NoResponse | ConnectionTimeout):
                others = 0
            if others:
                self._accepted, self._refused = others, time.monotonic()
            self._grant()
        return others


def _is_full(error: BaseException) -> bool:
    """Return whether the server says that it has no free connection."""
    return isinstance(error, psycopg.OperationalError) and FULL.search(str(error)) is not None
