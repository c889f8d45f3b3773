"""Read figures and exports from a read replica, and from the primary where the replica will not do.

The replica is read if what it has is at most 5 seconds old, and if it has all writes of the caller. That the caller may
ask is checked on the primary, as rights do not lag. Whatever fails on the replica is done again on the primary.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import ceil, inf
from time import monotonic

from musicsvc.store.engine import own_writes
from musicsvc.store.engine.postgres import standby
from musicsvc.store.engine.postgres.connections import RESERVED
from musicsvc.store.engine.postgres.database import READ, PostgresDatabase, transaction_settings
from musicsvc.store.engine.postgres.standby import ANSWER_SECONDS, LAG_SECONDS, Fault, Place, Standby, StandbyWatch
from musicsvc.store.engine.postgres.store import SHARED_LOCK_SECONDS
from musicsvc.store.engine.postgres.waiting import Limits, limited
from musicsvc.store.engine.sql import T, bound, perform
from musicsvc.store.engine.store import Replica, Store, enqueue

READERS = 6
LOST, LAG, OWN_WRITE, FAULT = "lost", "lag", "own_write", "fault"


class BehindError(Exception):
    """The replica lacks something that this read needs. The argument is the reason, as metrics have it."""


class StandbyReplica(Replica):
    """A standby. Any thread may call its methods."""

    def __init__(self, url: str, primary: Store, fault: Fault) -> None:
        """`fault`: returns an error message, which begins with its argument, if the current schema cannot be used."""
        self._url = url
        self._primary = primary
        self._database: PostgresDatabase | None = None
        self._place: Place | None = None  # that the database leads to
        self._watch = StandbyWatch(Standby(url, primary, fault), primary)
        self._lock = threading.Lock()
        self.reads = 0
        self.fallbacks = dict.fromkeys((LOST, LAG, OWN_WRITE, FAULT), 0)
        self._readers = ThreadPoolExecutor(READERS, "replica-read")
        self._watch.start()

    def close(self) -> None:
        self._readers.shutdown(wait=True)
        self._watch.close()
        if self._database is not None:
            self._database.close_all()

    @property
    def lag(self) -> float:
        return self._watch.lag

    def read(
        self, unit: Callable[[], T], check: Callable[[], object], account: int | None, within: float | None
    ) -> Future[T]:
        reason = LOST if self._watch.place is None else LAG if self._watch.lag > LAG_SECONDS else None
        if reason is not None:
            self._count(reason)
            return self._primary.read(unit, within=within)
        return enqueue(self._readers, self._read, unit, check, account, inf if within is None else monotonic() + within)

    def _read(self, unit: Callable[[], T], check: Callable[[], object], account: int | None, deadline: float) -> T:
        def writes_of_account() -> int:
            check()
            return own_writes.count(account)

        writes = self._on_primary(writes_of_account, deadline)
        try:
            result = self._attempt(partial(self._unit, unit, account, writes), deadline)
        except BehindError as behind:
            self._count(str(behind))
        except Exception:  # noqa: BLE001 - if the unit is at fault, it fails on the primary too
            self._count(FAULT)
        else:
            with self._lock:
                self.reads += 1
            return result
        return self._on_primary(unit, deadline)

    def _on_primary(self, unit: Callable[[], T], deadline: float) -> T:
        within = None if deadline == inf else deadline - monotonic()
        return self._primary.read(unit, within=within).result()

    def _unit(self, unit: Callable[[], T], account: int | None, writes: int) -> T:
        if own_writes.count(account) < writes:
            raise BehindError(OWN_WRITE)
        replayed = standby.replayed()
        if replayed is None or self._watch.age(replayed) > LAG_SECONDS:
            raise BehindError(LAG)
        return unit()

    def _attempt(self, unit: Callable[[], T], deadline: float) -> T:
        """Call `unit` in a transaction, which gets half of the time until `deadline`."""
        where, now = self._watch.place, monotonic()
        if where is None:
            raise BehindError(LOST)
        database, seconds = self._database_at(where), (deadline - now) / 2
        timeouts = transaction_settings(SHARED_LOCK_SECONDS, 0 if seconds == inf else max(1, ceil(seconds)))
        try:
            with bound(database), limited(Limits(now + ANSWER_SECONDS, lambda: self._watch.place == where)) as limits:
                database.connect()
                limits.deadline = now + seconds
                database.execute_sql(f"{READ}; {timeouts}")
                result = perform(database, unit)
                database.execute_sql("COMMIT")
                return result
        finally:
            database.close()  # the connection is not used again if its transaction is open

    def _database_at(self, place: Place) -> PostgresDatabase:
        with self._lock:
            before, known = self._database, self._place == place
            if not known:
                self._database, self._place = standby.database(self._url, READERS + RESERVED, place), place
            found = self._database
        if before is not None and not known:
            before.close_all()
        assert found is not None  # noqa: S101 - as set above
        return found

    def _count(self, reason: str) -> None:
        with self._lock:
            self.fallbacks[reason] += 1
