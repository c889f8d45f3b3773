"""Three nodes on one PostgreSQL, one of which is killed, or PostgreSQL fails: no write is lost, no limit exceeded."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import callers
from tests.faults.callers import Account
from tests.faults.nodes import Balancer, Greedy, Traffic
from tests.faults.outages import Database
from tests.support.postgres import MissingError
from tests.support.program import Program, until

psycopg = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
NODES = 3
CALLERS = 6
AMOUNT = 600  # for an address; beyond the last 100, a node counts some in advance
LOST = 300  # at most: what killed nodes have counted in advance, and counts that were not confirmed


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    try:
        made = Database(accounts=0)
    except MissingError as error:
        pytest.skip(str(error))
    for name, value in {
        "DATABASE_URL": made.url,
        "LIMITS__LOCAL": "true",
        "LIMITS__TOKEN": "1000000/hour",
        "LIMITS__ADDRESS": f"{AMOUNT}/hour",
    }.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    yield made
    made.close()


@pytest.fixture
def accounts(database: Database) -> list[Account]:
    with opening.connect(database.url) as store:
        return store.write(lambda: callers.prepare(CALLERS, Clock().now())).result()


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    with Balancer() as balancer:
        yield balancer


@pytest.fixture
def nodes(folder: Path, database: Database, balancer: Balancer) -> Iterator[list[Program]]:  # noqa: ARG001 - names it
    """Start the nodes; each has a data folder of its own."""
    with ExitStack() as stack:
        found = []
        for number in range(NODES):
            place = folder / f"node{number}"
            place.mkdir()
            options = ("--port", "0")
            found.append(stack.enter_context(Program(place, "serve", *options)))
        for node in found:
            balancer.add(node.root)
        yield found


def test_a_killed_node_loses_nothing_that_it_acknowledged_and_exceeds_no_limit(
    database: Database, accounts: list[Account], balancer: Balancer, nodes: list[Program]
) -> None:
    with Traffic(balancer, accounts) as traffic, Greedy(balancer) as greedy:
        traffic.go_on()
        greedy.spend(AMOUNT // 3)
        greedy.let(AMOUNT // 2)
        killed = nodes[0].root
        os.killpg(nodes[0].process.pid, signal.SIGKILL)
        until(lambda: len(balancer.ready()) == NODES - 1)
        balancer.remove(killed)
        traffic.go_on()
        greedy.spend_all()
    port = killed.rpartition(":")[2]
    assert [failure for failure in balancer.failures if f" at port {port}:" not in failure] == []
    assert traffic.odd + balancer.unavailable == []
    assert AMOUNT - LOST < greedy.allowed <= AMOUNT
    with opening.connect(database.url) as store:
        assert callers.faults(store, traffic.callers) == []


def _restart(database: Database, _failing: Callable[[], None]) -> None:
    database.restart()


def _freeze(database: Database, failing: Callable[[], None]) -> None:
    with database.frozen():
        failing()


def _lock_counts(database: Database, failing: Callable[[], None]) -> None:
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE quota")
        failing()


def _make_read_only(database: Database, failing: Callable[[], None]) -> None:
    with psycopg.connect(database.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
        failing()
        admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
        admin.execute("SELECT pg_reload_conf()")


FAILURES = (_restart, _freeze, _lock_counts, _make_read_only)


@pytest.mark.long
def test_failures_of_postgresql_lose_nothing_that_was_acknowledged_and_exceed_no_limit(
    database: Database, accounts: list[Account], balancer: Balancer, nodes: list[Program]
) -> None:
    balancer.asks = False  # so that nodes get requests while they are not ready
    assert len(nodes) == NODES
    with Traffic(balancer, accounts, patient=True) as traffic, Greedy(balancer) as greedy:
        for number, fail in enumerate(FAILURES):
            traffic.go_on()
            greedy.spend(number * AMOUNT // len(FAILURES))
            greedy.let((number + 1) * AMOUNT // len(FAILURES))
            failed = greedy.failed
            fail(database, lambda failed=failed: until(lambda: greedy.failed > failed + 10))  # type: ignore[misc]  # bound in the loop
            traffic.go_on()
        greedy.spend_all()
    assert traffic.odd + balancer.unavailable + balancer.failures == []
    assert AMOUNT - LOST < greedy.allowed <= AMOUNT
    with opening.connect(database.url) as store:
        assert callers.faults(store, traffic.callers) == []
