"""Servers with a read replica: figures may lag, realtime and own writes never do, and a lost replica fails nothing."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

from musicsvc.clock import DAY, MINUTE, isoformat
from musicsvc.server.routes.route import INSIGHTS, V1
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.models import User
from musicsvc.store.plays.counting import LEFT
from musicsvc.store.plays.rollups.counts import COUNTING
from tests.support import listening_world
from tests.support.listening_world import Catalog
from tests.support.program import Program, held, until
from tests.support.prometheus import read, total

psycopg = pytest.importorskip("psycopg")
from tests.support.replication import PAUSE, RESUME, Servers, replicated  # noqa: E402 - imports the driver

pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.slow]
ASKED = 8  # requests, each on its own connection, so that each worker of a node answers some


class Nodes(NamedTuple):
    """Two nodes with two workers each, the manager of a catalog, and an app that reports plays of its listeners."""

    servers: Servers
    roots: tuple[str, str]
    made: Catalog
    app: str

    @property
    def figures_path(self) -> str:
        return f"{INSIGHTS}/tracks/{self.made.tracks[0]}"

    def plays(self, node: int = 0) -> set[int]:
        """Return the numbers of plays of track 0 that the workers of a node tell its manager."""
        return {self.get(self.figures_path, node)["data"]["plays"]["total"] for _ in range(ASKED)}

    def get(self, path: str, node: int = 0) -> Any:
        return json.loads(self.ask(path, self.made.token, node=node))

    def ask(self, path: str, token: str, sent: object = None, node: int = 0) -> bytes:
        """Return the body of the response to a GET, or with `sent` to a POST. Raises HTTPError for other statuses."""
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = None if sent is None else json.dumps(sent).encode()
        with urlopen(Request(self.roots[node] + path, body, head), timeout=30) as answer:  # noqa: S310 - our server
            content: bytes = answer.read()
            return content

    def report(self, token: str, node: int = 0) -> None:
        """Report a play of track 0 by a new listener."""
        at = isoformat(time.time_ns() // 1000 - MINUTE)
        play = {"track_id": self.made.tracks[0], "played_at": at, "listener": uuid4().hex}
        answer = json.loads(self.ask(f"{V1}/plays", token, {"plays": [play]}, node))
        assert answer["accepted"] == 1, answer

    def metric(self, name: str, node: int = 0, **labels: str) -> float:
        return total(read(self.ask("/metrics", self.app, node=node).decode()), name, **labels)

    def export(self, node: int = 0) -> bytes:
        query = {"type": "tracks"}
        return self.ask(f"{INSIGHTS}/export/csv", self.made.token, query, node)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with ExitStack() as stack:
        servers = stack.enter_context(replicated())
        now = time.time_ns() // 1000
        with opening.connect(servers.url) as store:
            made = store.write(partial(_fill, now)).result()
            app = store.write(partial(_app, now)).result()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("MUSICSVC_DATABASE_URL", servers.url)
        patch.setenv("MUSICSVC_DATABASE_READ_URL", servers.read_url)
        roots = []
        for name in ("first", "second"):
            folder = tmp_path_factory.mktemp(name)
            patch.setenv("MUSICSVC_DATA_DIR", str(folder / "data"))
            roots.append(stack.enter_context(Program(folder, "serve", "--port", "0", "--workers", "2")).root)
        yield Nodes(servers, (roots[0], roots[1]), made, app)


def _fill(now: int) -> Catalog:
    made = listening_world.catalog(now)
    made.add_plays(made.draw(1, 300, lambda chance: now - chance.randrange(40 * DAY)))
    User.update(reports_plays=True).where(User.id == made.manager.user_id).execute()
    return made


def _app(now: int) -> str:
    user = users.create("app@label.test", api_access=True, now=now)
    User.update(reports_plays=True).where(User.id == user.id).execute()
    return tokens.create(user, "app", now=now)[1]


@pytest.fixture
def nodes(started: Nodes) -> Iterator[Nodes]:
    """Both nodes, when all workers read the replica. The test leaves the servers as they are."""
    for node in (0, 1):
        until(partial(_all_from_replica, started, node))
    yield started
    started.servers.on_standby(RESUME)


def _all_from_replica(nodes: Nodes, node: int) -> bool:
    before = nodes.metric("musicsvc_replica_reads_total", node)
    nodes.plays(node)
    until(lambda: nodes.metric("musicsvc_requests_in_flight", node) == 1)
    time.sleep(1.1)  # metrics of other workers are read every second
    return nodes.metric("musicsvc_replica_reads_total", node) - before == ASKED


def test_figures_lag_for_at_most_5_seconds_and_realtime_and_own_writes_never(nodes: Nodes) -> None:
    (before,) = nodes.plays()
    realtime = f"{nodes.figures_path}/realtime"
    latest = nodes.get(realtime)["data"]["recent_plays"]
    exported = nodes.export()
    nodes.servers.on_standby(PAUSE)
    began = time.monotonic()
    nodes.report(nodes.app)

    assert nodes.plays(0) == nodes.plays(1) == {before}
    assert nodes.export(1) == exported
    assert nodes.get(realtime)["data"]["recent_plays"][1:] == latest[:19]
    until(lambda: nodes.plays(0) | nodes.plays(1) == {before + 1}, 10)
    assert time.monotonic() - began < 6
    assert nodes.export(1) != exported
    assert nodes.metric("musicsvc_replica_lag_seconds") > 5
    # Those of the other worker show up to a second later.
    until(lambda: nodes.metric("musicsvc_replica_fallbacks_total", reason="lag") > 0, 10)


def test_what_a_token_wrote_on_one_node_is_in_its_figures_of_another(nodes: Nodes) -> None:
    (before,) = nodes.plays(1)
    nodes.servers.on_standby(PAUSE)
    nodes.report(nodes.made.token, 0)

    assert nodes.plays(1) == nodes.plays(0) == {before + 1}
    nodes.servers.on_standby(RESUME)


def test_a_play_that_another_transaction_counts_is_in_the_figures_of_its_reporter(nodes: Nodes) -> None:
    (before,) = nodes.plays(1)
    connected = psycopg.connect(nodes.servers.url, application_name="test")  # programs of version 0.1.0 have no name
    with connected as counting, ThreadPoolExecutor() as threads:
        counting.execute("SELECT pg_advisory_xact_lock(%s)", (COUNTING,))
        reported = threads.submit(nodes.report, nodes.made.token)
        until(lambda: left_plays(nodes.servers.read_url), 20)
        nodes.servers.on_standby(PAUSE)
        counting.rollback()
        reported.result(10)

    assert nodes.plays(1) == {before + 1}


def left_plays(url: str) -> bool:
    """Return whether plays are recorded and not counted yet."""
    with psycopg.connect(url) as connection:
        return bool(connection.execute(LEFT).fetchall())


def test_what_was_read_late_is_not_kept(nodes: Nodes) -> None:
    (before,) = nodes.plays()
    nodes.servers.on_standby(PAUSE)
    nodes.report(nodes.app)
    assert nodes.plays() == {before}
    nodes.servers.on_standby(RESUME)
    until(lambda: nodes.plays() == {before + 1}, 3)


@pytest.mark.parametrize("loss", ["frozen", "killed"])
def test_no_request_fails_or_waits_for_long_when_the_replica_is_lost(
    nodes: Nodes, loss: str, record_property: Callable[[str, object], None]
) -> None:
    (before,) = nodes.plays()
    longest = 0.0
    with ExitStack() as stack:
        for number in range(60):
            if number == 10 and loss == "killed":
                os.kill(nodes.servers.standby.processes[0], signal.SIGKILL)
            elif number == 10:
                stack.enter_context(held(*nodes.servers.standby.processes))
            began = time.monotonic()
            assert nodes.get(nodes.figures_path, number % 2)["data"]["plays"]["total"] == before
            longest = max(longest, time.monotonic() - began)
    assert longest < 5
    record_property("longest", round(longest, 2))
    if loss == "killed":
        nodes.servers.standby.restart()
