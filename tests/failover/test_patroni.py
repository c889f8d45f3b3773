"""Two nodes over three PostgreSQL servers under Patroni, whose leader is killed (kill -9) under load."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.schema import schema
from tests.failover import cluster
from tests.failover.cluster import PASSWORDS, Cluster
from tests.faults import callers
from tests.faults.nodes import Balancer, Greedy, Traffic
from tests.support.program import Program, until

psycopg = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.long,
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
NODES = 2
CALLERS = 6
WRITES = 1000  # before and after
AMOUNT = 600
LOST = 300  # at most: what nodes have counted in advance, and counts that were not confirmed
PASSWORD = "music-of-a-test"


@pytest.fixture
def patroni() -> Iterator[Cluster]:
    with cluster.running() as found:
        yield found


@pytest.fixture
def url(patroni: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create the role and the database of the service; return its address."""
    admin = patroni.address("postgres", PASSWORDS["PATRONI_SUPERUSER_PASSWORD"], "postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE music LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("CREATE DATABASE music OWNER music")
    url = patroni.address("music", PASSWORD, "music")
    for name, value in {
        "DATABASE_URL": url,
        "LIMITS__LOCAL": "true",
        "LIMITS__TOKEN": "1000000/hour",
        "LIMITS__ADDRESS": f"{AMOUNT}/hour",
    }.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    schema.upgrade(url)
    return url


def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(
    patroni: Cluster,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    with opening.connect(url) as store:
        accounts = store.write(lambda: callers.prepare(CALLERS, Clock().now())).result()
    with ExitStack() as stack:
        balancer = stack.enter_context(Balancer(asks=False))
        for number in range(NODES):
            place = tmp_path / f"node{number}"
            place.mkdir()
            balancer.add(stack.enter_context(Program(place, "serve", "--port", "0")).root)
        with Traffic(balancer, accounts, patient=True) as traffic, Greedy(balancer) as greedy:
            traffic.go_on(WRITES)
            greedy.spend(AMOUNT // 2)
            greedy.let(AMOUNT * 2 // 3)
            patroni.kill(patroni.leader)
            killed, before = time.monotonic(), traffic.acknowledged
            until(lambda: not balancer.ready())
            until(lambda: len(balancer.ready()) == NODES)
            traffic.go_on(1, 1)
            record_property("seconds without writes", round(time.monotonic() - killed, 1))
            assert traffic.acknowledged > before
            traffic.go_on(WRITES)
            greedy.spend_all()
    assert traffic.odd + balancer.unavailable + balancer.failures == []
    assert AMOUNT - LOST < greedy.allowed <= AMOUNT
    with opening.connect(url) as store:
        assert callers.faults(store, traffic.callers) == []
    record_property("acknowledged", traffic.acknowledged)
