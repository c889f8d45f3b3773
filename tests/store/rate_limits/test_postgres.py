"""Rate limit counts on PostgreSQL: shared by all nodes, timed by the server, with connections that may be lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.rate_limits.postgres import PostgresHitCounter
from musicsvc.store.rate_limits.window import Hit, Limit
from tests.support import databases
from tests.support.bounds import Bounds
from tests.support.postgres_locks import cut

psycopg = pytest.importorskip("psycopg")


pytestmark = pytest.mark.only_on("postgres")
LIMIT = Limit("token", 100, 3_600_000)
HIT = Hit(LIMIT, "1")


@contextmanager
def opened(url: str) -> Iterator[PostgresHitCounter]:
    from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - the run on SQLite does without

    with opening.connect(url) as store:
        counter = PostgresHitCounter(store)
        counter.check()
        yield counter


def test_concurrent_nodes_allow_exactly_the_amount(store_url: str) -> None:
    with opened(store_url) as one, opened(store_url) as other, ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda number: (one, other)[number % 2].count([HIT])[0], range(200)))
        other_limit = Hit(Limit("exports", 50, 3_600_000), "1")
        both = list(threads.map(lambda _: one.count([Hit(LIMIT, "2"), other_limit]), range(100)))
    assert sum(status.allowed for status in taken) == 100
    assert sorted(status.remaining for status in taken if status.allowed) == list(range(100))
    assert sum(status.allowed for _, status in both) == 50
    assert min(status.remaining for status, _ in both) == 50


def test_requests_that_several_nodes_count_together_are_counted_once_each(store_url: str) -> None:
    hits = [[Hit(LIMIT, str(number))] for number in range(30)]
    pairs = [[*each, Hit(Limit("exports", 50, 3_600_000), each[0].subject)] for each in hits[:3]]
    with ThreadPoolExecutor(3) as threads:

        def node(number: int) -> None:
            with opened(store_url) as counter:
                for turn in range(10):
                    together = [*hits, *pairs, *hits[:5]]
                    counter.count_all(Random(f"{number}/{turn}").sample(together, len(together)))

        list(threads.map(node, range(3)))
    with opened(store_url) as counter:
        left = [status.remaining for (status,) in counter.count_all(hits)]
        both = [[status.remaining for status in statuses] for statuses in counter.count_all(pairs)]
    assert left == [100 - 90 - 1] * 3 + [100 - 60 - 1] * 2 + [100 - 30 - 1] * 25
    assert both == [[8, 50 - 30 - 1]] * 3


def test_lost_connections_are_renewed(store_url: str, admin: Any) -> None:
    with opened(store_url) as counter:
        for number in range(3):
            assert counter.count([HIT])[0].remaining == 99 - 2 * number
            assert cut(admin) == 1
            assert counter.count([HIT, Hit(LIMIT, "2")])[0].remaining == 98 - 2 * number


def test_a_missing_server_is_unavailable(store_url: str, template: databases.Template, admin: Any) -> None:
    with opened(store_url) as counter:
        assert counter.count([HIT])[0].allowed
        admin.execute("DROP TABLE quota")
        with pytest.raises(Unavailable) as missing_table:
            counter.count([HIT])
        template.remove(store_url)
        with pytest.raises(Unavailable) as missing_server:
            counter.count([HIT])
        with pytest.raises(Unavailable), opened(store_url):
            pass
    assert missing_table.value.here.startswith("The table of rate limits cannot be used: relation")
    assert " does not accept connections: " in missing_server.value.here


def test_the_table_outlives_crashes_and_is_purged(store_url: str, admin: Any, bounds: Bounds) -> None:
    assert admin.execute("SELECT relpersistence FROM pg_class WHERE relname = 'quota'").fetchone() == ("p",)
    bounds(postgres_counts=5)
    with opened(store_url) as counter:
        for number in range(20):
            counter.count([Hit(LIMIT, str(number))])
        admin.execute("UPDATE quota SET ends = 0 WHERE length(key) = 7")
        counter.purge()
        rows = admin.execute("SELECT key FROM quota").fetchall()
    assert len(rows) == 5
    assert {len(key) for (key,) in rows} == {8}
