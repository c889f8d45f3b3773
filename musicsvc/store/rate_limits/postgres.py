"""Count requests against rate limits in a PostgreSQL table shared by all nodes, using PostgreSQL's clock.

A count is committed like any other write, so that it outlives a crash and a failover. Otherwise each limit would begin
again. Leases keep busy clients from waiting for the disk with each request.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from musicsvc.errors import Unavailable
from musicsvc.store.engine.postgres.database import ERRORS, reason
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.window import (
    PURGED,
    SECOND,
    UPSERT,
    Count,
    Hit,
    Numbers,
    SharedHitCounter,
    Status,
    advance,
)

T = TypeVar("T")
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
NOW = f"coalesce(%(now)s::bigint, {CLOCK})"
COUNT = f"""
    WITH moment (now) AS MATERIALIZED (SELECT {NOW}), counted AS (
        INSERT INTO quota (key, began, requests, previous, ends)
        SELECT %(key)s, now, %(number)s, 0, now + 2 * %(window)s::bigint FROM moment WHERE %(number)s <= %(amount)s
        {UPSERT.format(window="%(window)s::bigint", amount="%(amount)s::bigint", least="least", greatest="greatest")}
    )
    SELECT moment.now, counted.began, counted.requests, counted.previous FROM moment LEFT JOIN counted ON true
"""  # noqa: S608 - composed of constants
SELECT = "SELECT began, requests, previous FROM quota WHERE key = %(key)s"
UNCOUNT = """
    UPDATE quota SET requests = greatest(0, requests - %(number)s)
    WHERE key = %(key)s AND began = coalesce(%(began)s::bigint, began)
"""
# Rows that a request is updating are skipped until the next purge.
DELETE_OVER = f"""
    DELETE FROM quota WHERE key IN (
        SELECT key FROM quota, (SELECT {NOW} AS now) AS moment
        WHERE ends <= now OR began > now + {60 * SECOND} LIMIT {PURGED} FOR UPDATE OF quota SKIP LOCKED)
"""  # noqa: S608 - composed of constants
DELETE_OLDEST = """
    DELETE FROM quota WHERE key IN (
        SELECT key FROM quota ORDER BY ends LIMIT greatest(0, (SELECT count(*) FROM quota) - %(max_rows)s)
        FOR UPDATE SKIP LOCKED)
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
        self._run(lambda: _rows(SELECT, key=""))

    def uncount(self, hits: Sequence[Hit], number: int = 1, began: int | None = None) -> None:
        self._run(lambda: super(PostgresHitCounter, self).uncount(hits, number, began))

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        return self.count_all([hits])[0]

    def _count_each(self, numbers: Numbers) -> dict[tuple[Hit, ...], list[list[Status]]]:
        """Count those toward one limit in one transaction, as a commit waits for the disk, and others in one each.

        They are counted in the order of keys, so that processes do not wait for each other in a circle.
        """
        counted: dict[tuple[Hit, ...], list[list[Status]]] = {}
        for _, group in groupby(numbers, lambda hits: len(hits) == 1 or hits):
            together = {hits: numbers[hits] for hits in sorted(group, key=lambda hits: hits[0].key)}
            counted |= self._run(partial(super()._count_each, together))
        return counted

    def _count(self, hit: Hit, number: int) -> tuple[Count, int, bool]:
        limit, key = hit.limit, hit.key
        values = {"key": key, "now": self._clock(), "window": limit.window, "amount": limit.amount, "number": number}
        ((now, began, current, previous),) = _rows(COUNT, **values)
        if began is not None:
            return Count(began, current, previous), now, True
        stored = _rows(SELECT, key=key)
        return advance(limit, Count(*stored[0]), now) if stored else Count(now, 0, 0), now, False

    def _uncount(self, hit: Hit, number: int, began: int | None = None) -> None:
        _execute(UNCOUNT, key=hit.key, number=number, began=began)

    def purge(self) -> None:
        self._run(lambda: _execute(DELETE_OVER, now=self._clock()))
        self._run(lambda: _execute(DELETE_OLDEST, max_rows=MAX_ROWS))

    def close(self) -> None:
        """Leave the store open."""

    def _run(self, unit: Callable[[], T]) -> T:
        try:
            return self._store.write(unit, urgent=True, counters_only=True, within=WAIT_SECONDS).result()
        except ERRORS as error:
            raise Unavailable(here=f"The table of rate limits cannot be used: {reason(error)}.") from error


def _execute(sql: str, **values: int | str | None) -> None:
    current().execute_sql(sql, values)


def _rows(sql: str, **values: int | str | None) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = current().execute_sql(sql, values).fetchall()
    return found
