"""A standby of a PostgreSQL server: one that replays the log of the primary, and can be read meanwhile.

How old it is follows from positions in the log alone. A thread notes twice a second how far the log of the primary is
written, and when it began to ask. A standby that has replayed one of these positions has every commit that was
acknowledged until then. So an idle primary does not look like a lagging standby, one that is cut off lags as soon as
the primary writes, and no clocks are compared.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic, sleep
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.engine.postgres.changes import IDENTITY
from musicsvc.store.engine.postgres.database import ERRORS, PostgresDatabase, reason
from musicsvc.store.engine.postgres.waiting import Limits, limited
from musicsvc.store.engine.sql import bound, fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import describe, without_password

LAG_SECONDS = 5.0
POLL_SECONDS = 0.5
ANSWER_SECONDS = 1.0  # a standby that takes longer to say how far it is counts as lost
RETRY_SECONDS = 2.0  # after it was lost
REPEAT_SECONDS = 10.0  # between two warnings
KEPT = 40  # positions of the primary
# Bytes of the log since its beginning.
POSITION = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
REPLAYED = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END - '0/0')::bigint"

log = logging.getLogger("musicsvc")
Fault = Callable[[str], str | None]
Place = tuple[str, str, int]  # a host, its address and its port


def position() -> int:
    """Return how far the log of the current database, which must be a primary, is written."""
    return int(fetch(POSITION)[0][0])


def replayed() -> int | None:
    """Return how far the current database has replayed the log of the primary, or None if it is no standby."""
    found = fetch(REPLAYED)[0][0]
    return None if found is None else int(found)


def database(url: str, budget: int = 1, place: Place | None = None) -> PostgresDatabase:
    """Return the database at the URL. Its connections lead to `place`, or else to the first host that is a standby."""
    found = PostgresDatabase(url, budget)
    found.connect_params["target_session_attrs"] = "standby"
    if place is not None:
        found.connect_params |= dict(zip(("host", "hostaddr", "port"), place, strict=True))
    return found


class Standby:
    """A connection to a standby, for one thread. It is opened again after a fault, perhaps to another host."""

    def __init__(self, url: str, primary: Store, fault: Fault) -> None:
        """`fault`: returns an error message, which begins with its argument, if the current schema cannot be used."""
        self.name = describe(url)
        self._database = database(url)
        self._primary = primary
        self._fault = fault

    def replayed(self) -> int:
        """Return how far the standby has replayed the log of the primary.

        Raises Failure if it is no standby of the primary, or has another schema, and errors of the driver.
        """
        try:
            with bound(self._database), limited(Limits(monotonic() + ANSWER_SECONDS)):
                if self._database.connect(reuse_if_open=True):
                    self._verify()
                found = replayed()
        except BaseException:
            self.close()
            raise
        if found is None:
            self.close()
            raise Failure(f"{self.name} is no standby.")
        return found

    def _verify(self) -> None:
        """Raise Failure unless this is a standby of the primary, with a schema that can be used."""
        if fetch(IDENTITY) != self._primary.read(lambda: fetch(IDENTITY), within=ANSWER_SECONDS).result():
            raise Failure(f"{self.name} is not a replica of {without_password(self._primary.url)}.")
        if fault := self._fault(self.name):
            raise Failure(fault)

    @property
    def place(self) -> Place:
        """The place that the connection leads to."""
        connection: Any = self._database.connection()
        return connection.info.host, connection.info.hostaddr, connection.info.port

    def close(self) -> None:
        """Close the connection."""
        with suppress(*ERRORS):
            self._database.discard()

    def explain(self, error: BaseException) -> str:
        """Return why the standby is not read, after an error of `replayed`."""
        return error.here if isinstance(error, Failure) else f"{self.name} cannot be read: {reason(error)}."

    @property
    def late(self) -> str:
        """Why the standby is not read if it lags."""
        return f"{self.name} is more than 5 seconds behind."


def problem(url: str, primary: Store, fault: Fault) -> str | None:
    """Return why figures are not read from the standby at `url`, or None if they are. May take 5 seconds."""
    standby, end = Standby(url, primary, fault), monotonic() + LAG_SECONDS
    try:
        written = primary.read(position).result()
        while standby.replayed() < written:
            if monotonic() > end:
                return standby.late
            sleep(POLL_SECONDS / 5)
    except (Failure, *ERRORS) as error:
        return standby.explain(error)
    finally:
        standby.close()
    return None


class StandbyWatch:
    """Watches a standby and its primary, on a thread of its own. `place`: where it is, or None while it is lost."""

    def __init__(self, standby: Standby, primary: Store) -> None:
        self._standby = standby
        self._primary = primary
        self._noted: tuple[tuple[float, int], ...] = ()  # replaced as a whole, as several threads read it
        self._asking: Future[int] | None = None
        self._covered = -inf
        self._told, self._told_at = "", -inf
        self.place: Place | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replica-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    @property
    def lag(self) -> float:
        """The seconds since the last time until which the standby is known to have every commit."""
        return monotonic() - self._covered

    def age(self, replayed: int) -> float:
        """Return the seconds since a time until which a standby that has replayed this much has every commit."""
        return monotonic() - max((at for at, position in self._noted if position <= replayed), default=-inf)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._ask()
            self._tell(self._probe())
            self._closing.wait(POLL_SECONDS if self.place else RETRY_SECONDS)
        self._standby.close()

    def _ask(self) -> None:
        """Ask the primary for its position. It is noted when it arrives."""
        if self._asking is None or self._asking.done():
            at = monotonic()
            with suppress(Failure):
                self._asking = self._primary.read(position, within=ANSWER_SECONDS)
                self._asking.add_done_callback(partial(self._note, at))

    def _note(self, at: float, found: Future[int]) -> None:
        if found.exception() is None:
            self._noted = (*self._noted[-KEPT:], (at, found.result()))

    def _probe(self) -> str:
        """Ask the standby for its position. Return what is wrong with it, or an empty string."""
        try:
            replayed = self._standby.replayed()
        except (Failure, *ERRORS) as error:
            self.place = None
            return self._standby.explain(error)
        self.place = self._standby.place
        self._covered = max(self._covered, monotonic() - self.age(replayed))
        return self._standby.late if self._covered > -inf and self.lag > LAG_SECONDS else ""

    def _tell(self, problem: str) -> None:
        """Log that the standby is lost or back, but not too often."""
        if problem != self._told and monotonic() - self._told_at > REPEAT_SECONDS:
            if problem:
                log.warning("figures and exports are read from the primary: %s", problem)
            else:
                log.info("figures and exports are read from the replica again")
            self._told, self._told_at = problem, monotonic()
