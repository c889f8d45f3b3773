"""Counting for all nodes: an unlogged table of PostgreSQL, by the server's clock.

On connections of its own, so that no request waits behind those that write, and in one statement without a transaction
around it, which is one way to the server and back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from musicsvc.errors import Unavailable
from musicsvc.store.engine.postgres import ERRORS, PostgresDatabase
from musicsvc.store.rate_limits.window import SECOND, TAKE, Busy, Demand, Quotas, Row, Standing, at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
NOW = f"coalesce(%(now)s::bigint, {CLOCK})"
COUNT = f"""
    WITH moment (now) AS MATERIALIZED (SELECT {NOW}), counted AS (
        INSERT INTO quota (key, began, taken, earlier, ends)
        SELECT %(key)s, now, 1, 0, now + 2 * %(window)s::bigint FROM moment
        {TAKE.format(window="%(window)s::bigint", amount="%(amount)s::bigint", least="least", greatest="greatest")}
    )
    SELECT moment.now, counted.began, counted.taken, counted.earlier FROM moment LEFT JOIN counted ON true
"""  # noqa: S608 - put together from constants
LOOK = "SELECT began, taken, earlier FROM quota WHERE key = %(key)s"
GIVE_BACK = "UPDATE quota SET taken = taken - 1 WHERE key = %(key)s AND taken > 0"
# Rows that somebody counts in just now are left for the next time.
OVER = f"""
    DELETE FROM quota WHERE key IN (
        SELECT key FROM quota, (SELECT {NOW} AS now) AS moment
        WHERE ends <= now OR began > now + {60 * SECOND} FOR UPDATE OF quota SKIP LOCKED)
"""  # noqa: S608
OLDEST = """
    DELETE FROM quota WHERE key IN (
        SELECT key FROM quota ORDER BY ends LIMIT greatest(0, (SELECT count(*) FROM quota) - %(most)s)
        FOR UPDATE SKIP LOCKED)
"""
MOST_ROWS = 1_000_000


class PostgresQuotas(Quotas):
    """The table of all nodes; may be used by several threads, each on a connection of its own."""

    threads = 2

    def __init__(self, url: str, clock: Callable[[], int | None] = lambda: None) -> None:
        """`clock`: None stands for the server's own."""
        self._clock = clock
        self._database = PostgresDatabase(url)

    def open(self) -> None:
        """Look whether the table answers."""
        self._tried(lambda: self._rows(LOOK, key=""))

    def in_place(self) -> bool:
        """A table is where it is."""
        return True

    def take_at_once(self, demands: Sequence[Demand]) -> list[Standing]:  # noqa: ARG002 - of the other kind
        """The way to the server is always too long."""
        raise Busy

    def take(self, demands: Sequence[Demand]) -> list[Standing]:
        """Count; several demands in one transaction."""
        return self._tried(lambda: self._take(demands))

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Uncount a request that was allowed but could not be served."""
        self._tried(lambda: super(PostgresQuotas, self).give_back(demands))

    def _take(self, demands: Sequence[Demand]) -> list[Standing]:
        if len(demands) == 1:
            return super().take(demands)
        self._database.execute_sql("BEGIN")
        standings = super().take(demands)
        self._database.execute_sql("COMMIT")
        return standings

    def _count(self, demand: Demand) -> tuple[Row, int, bool]:
        limit, key = demand.limit, demand.key
        asked = {"key": key, "now": self._clock(), "window": limit.window, "amount": limit.amount}
        ((now, began, taken, earlier),) = self._rows(COUNT, **asked)
        if began is not None:
            return Row(began, taken, earlier), now, True
        kept = self._rows(LOOK, key=key)
        return at(limit, Row(*kept[0]), now) if kept else Row(now, 0, 0), now, False

    def _give_back(self, demand: Demand) -> None:
        self._database.execute_sql(GIVE_BACK, {"key": demand.key})

    def purge(self) -> None:
        """Drop rows that no longer tell anything, and the oldest where there are far too many."""
        self._tried(lambda: self._database.execute_sql(OVER, {"now": self._clock()}))
        self._tried(lambda: self._database.execute_sql(OLDEST, {"most": MOST_ROWS}))

    def close(self) -> None:
        """Close the connections of all threads."""
        self._database.close_all()

    def _rows(self, sql: str, **asked: int | str | None) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = self._database.execute_sql(sql, asked).fetchall()
        return found

    def _tried(self, work: Callable[[], T]) -> T:
        """Do it; once more on a new connection where that of the last time fails."""
        while True:
            fresh = self._database.is_closed()
            try:
                self._database.connect(reuse_if_open=True)
                return work()
            except ERRORS as error:
                with suppress(*ERRORS):
                    self._database.close()
                if fresh:
                    raise Unavailable("the PostgreSQL server of database_url does not count just now") from error
