"""Count requests against rate limits in a PostgreSQL table shared by all nodes, using PostgreSQL's clock.

A count is committed like any other write, so that it outlives a crash and a failover. Otherwise each limit would begin
again. Leases keep busy clients from waiting for the disk with each request.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg.errors import SerializationFailure

from musicsvc.errors import Unavailable
from musicsvc.store.engine.postgres.database import ERRORS, reason
from musicsvc.store.engine.sql import T, fetch, run
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.shared import COLUMNS, SAVE, SharedHitCounter, counts_of
from musicsvc.store.rate_limits.window import Count

CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
LOCKED = f"""
    WITH locked AS (SELECT {COLUMNS} FROM quota WHERE key = ANY(?) ORDER BY key FOR UPDATE)
    SELECT coalesce(?::bigint, {CLOCK}), locked.* FROM (SELECT) AS moment LEFT JOIN locked ON true
"""  # noqa: S608 - composed of constants
# Rows that a request is updating are skipped until the next purge.
DELETE = """
    DELETE FROM quota WHERE key IN (
        SELECT key FROM quota JOIN unnest(?::text[], ?::bigint[]) AS old (key, ends) USING (key, ends)
        FOR UPDATE OF quota SKIP LOCKED)
"""
MAX_ROWS = 1_000_000
WAIT_SECONDS = 2.0  # the longest wait for the server


class PostgresHitCounter(SharedHitCounter):
    """Counts requests in a table of PostgreSQL, which all nodes share, as urgent work of the store."""

    spans_machines = True

    def __init__(self, store: Store, clock: Callable[[], int | None] = lambda: None) -> None:
        """`clock` returns the time in milliseconds, or None to use PostgreSQL's clock."""
        self._store = store
        self._clock = clock

    def check(self) -> None:
        self._transact(lambda: self._locked([]))

    def purge(self) -> None:
        now, _ = self._transact(lambda: self._locked([]))
        self._purge(now, MAX_ROWS)

    def _locked(self, keys: Sequence[str]) -> tuple[int, Mapping[str, tuple[Count, int]]]:
        rows = fetch(LOCKED, keys, self._clock())
        return rows[0][0], counts_of(row for _, *row in rows if row[0] is not None)

    def _save(self, *row: int | str) -> None:
        if not fetch(SAVE, *row):
            raise SerializationFailure("another process counted the key first")  # the store runs the unit again

    def _read(self, query: str, *values: int) -> list[Any]:
        return self._transact(lambda: fetch(query, *values))

    def _delete(self, rows: Sequence[tuple[str, int]]) -> None:
        if rows:
            self._transact(lambda: run(DELETE, *map(list, zip(*rows, strict=True))))

    def close(self) -> None:
        """Leave the store open."""

    def _transact(self, unit: Callable[[], T]) -> T:
        try:
            return self._store.write(unit, urgent=True, counters_only=True, within=WAIT_SECONDS).result()
        except ERRORS as error:
            raise Unavailable(here=f"The table of rate limits cannot be used: {reason(error)}.") from error
