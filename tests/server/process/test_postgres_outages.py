"""A server over a PostgreSQL that freezes, restarts, is read-only, or has a locked table.

Every response comes in time, nothing acknowledged is lost, and all is well a second after the failure.
"""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.doctor.database import check_database
from musicsvc.store.engine.sql import fetch
from tests.faults import small_disk
from tests.faults.outages import TIMEOUT, Database, Response, Traffic, ask
from tests.support.postgres import MissingError
from tests.support.program import Program, run, until

psycopg = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
RESPONSE, READY, RECOVERY = 10.0, 2.0, 1.0  # seconds
PLAYLISTS = "/api/v1/playlists"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    try:
        made = Database()
    except MissingError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", made.url)
    monkeypatch.setenv("MUSICSVC_LIMITS__LOCAL", "true")
    monkeypatch.setenv("MUSICSVC_LIMITS__TOKEN", "100000/minute")
    yield made
    made.close()


def port_of(program: Program) -> int:
    return int(program.root.rpartition(":")[2])


def between(responses: list[Response], begin: float, end: float) -> list[Response]:
    """Return the responses to requests that were sent and answered between these moments."""
    return [one for one in responses if begin < one.sent and one.sent + one.seconds < end]


def go_on(traffic: Traffic) -> None:
    """Wait for some more acknowledged writes."""
    before = len(traffic.acknowledged)
    until(lambda: len(traffic.acknowledged) > before + 100)


def wait_for_recovery(traffic: Traffic, returned: float) -> None:
    """Wait for requests and health checks that are sent a second after the return of the database."""
    moment = returned + RECOVERY
    until(lambda: traffic.since(moment) and any(check.sent > moment for check in tuple(traffic.checks)))


def require_recovery(traffic: Traffic, database: Database, returned: float) -> None:
    """Check that a second after the return of the database every request succeeds, and that nothing is lost."""
    assert {one.status for one in traffic.since(returned + RECOVERY)} == {200}
    assert {check.status for check in traffic.checks if check.sent > returned + RECOVERY} == {200}
    assert traffic.lost(database.url) == set()


def test_a_frozen_database_delays_no_response_beyond_ten_seconds(
    folder: Path, database: Database, *, long: bool
) -> None:
    with Program(folder, "serve", "--port", "0", "--workers", "2") as program:
        with Traffic(port_of(program), database.tokens) as traffic:
            go_on(traffic)
            with database.frozen():
                frozen = time.monotonic()
                time.sleep(30 if long else 13)
                thawed = time.monotonic()
            wait_for_recovery(traffic, thawed)
            go_on(traffic)
        assert max(response.seconds for response in traffic.responses) < RESPONSE
        assert max(check.seconds for check in traffic.checks) < READY
        during = between(traffic.responses, frozen + 0.1, thawed)
        assert {(one.status, one.retry_after) for one in during} == {(503, "1")}
        assert {check.status for check in between(traffic.checks, frozen, thawed)} == {503}
        require_recovery(traffic, database, thawed)
        assert program.end(signal.SIGTERM) == 0


def test_a_write_ends_and_the_server_stops_while_the_database_is_frozen(folder: Path, database: Database) -> None:
    with Program(folder, "serve", "--port", "0") as program:
        port, token = port_of(program), database.tokens[0]
        assert ask(port, "POST", PLAYLISTS, token, {"name": "before"}).status == 200
        with database.frozen():
            answer = ask(port, "POST", PLAYLISTS, token, {"name": "during"})
            assert (answer.status, answer.retry_after) == (503, "1")
            began = time.monotonic()
            assert program.end(signal.SIGTERM) == 0
            assert time.monotonic() - began < RESPONSE


@pytest.mark.parametrize("connections", [2, 10])
def test_a_unit_without_a_limit_ends_while_the_database_is_frozen(database: Database, connections: int) -> None:
    with opening.connect(database.url, connections=connections) as store:
        units = [store.read(lambda: fetch("SELECT pg_sleep(60)")) for _ in range(3)]
        use = store.connections
        assert use is not None
        until(lambda: use.in_use >= min(3, connections - 1))
        with database.frozen():
            began = time.monotonic()
            assert [type(unit.exception(TIMEOUT)) for unit in units] == [Unavailable] * 3
            assert time.monotonic() - began < RESPONSE
            again = time.monotonic()
            assert isinstance(store.write(lambda: None).exception(TIMEOUT), Unavailable)
            assert time.monotonic() - again < RECOVERY
        returned = time.monotonic()
        until(lambda: store.write(lambda: None).exception(TIMEOUT) is None)
        assert time.monotonic() - returned < RECOVERY


def test_a_command_ends_while_the_database_is_frozen(database: Database) -> None:
    with database.frozen():
        began = time.monotonic()
        done = run("user", "list")
        assert time.monotonic() - began < TIMEOUT / 2
    assert done.returncode == 1
    assert "does not accept connections" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_immediate_restart_of_the_database_loses_nothing_acknowledged(folder: Path, database: Database) -> None:
    with Program(folder, "serve", "--port", "0", "--workers", "2") as program:
        with Traffic(port_of(program), database.tokens) as traffic:
            for _ in range(2):
                go_on(traffic)
                database.restart()
                returned = time.monotonic()
                wait_for_recovery(traffic, returned)
        assert {one.status for one in traffic.responses} == {200, 503}
        require_recovery(traffic, database, returned)


def test_a_read_only_database_is_not_ready_and_can_be_read(
    folder: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_LIMITS__LOCAL", "false")  # what cannot be counted is refused
    with Program(folder, "serve", "--port", "0") as program, psycopg.connect(database.url, autocommit=True) as admin:
        port, token = port_of(program), database.tokens[0]
        assert ask(port, "POST", PLAYLISTS, token, {"name": "before"}).status == 200
        assert ask(port, "GET", "/readyz").status == 200

        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
        until(lambda: ask(port, "GET", "/readyz").status == 503, READY)
        assert ask(port, "GET", "/readyz").body == b'{"status":"read-only"}'
        refused = ask(port, "POST", PLAYLISTS, token, {"name": "during"})
        assert (refused.status, b'"The database accepts no changes at the moment."' in refused.body) == (503, True)
        assert ask(port, "GET", "/api/v1/genres", token).status == 200
        until(lambda: "cannot execute" in program.err)
        admin.execute("SET default_transaction_read_only = off")
        admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
        admin.execute("SELECT pg_reload_conf()")
        until(lambda: ask(port, "GET", "/readyz").status == 200, RECOVERY)
        assert ask(port, "POST", PLAYLISTS, token, {"name": "after"}).status == 200


def test_a_full_disk_of_the_database_refuses_writes_and_is_not_ready(
    folder: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk.mounted(folder / "small") as disk:
        url, (token, *_) = database.on_disk(disk.folder)
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
        monkeypatch.setenv("MUSICSVC_LIMITS__LOCAL", "false")  # what cannot be counted is refused
        with Program(folder, "serve", "--port", "0") as program:
            port = port_of(program)
            assert ask(port, "GET", "/readyz").status == 200
            disk.fill()
            until(lambda: ask(port, "POST", PLAYLISTS, token, {"name": "x" * 180}).status == 503)
            answer = ask(port, "GET", "/readyz")
            assert (answer.status, answer.body) == (503, b'{"status":"read-only"}')
            assert ask(port, "GET", "/api/v1/genres", token).status == 200
            until(lambda: "No space left on device" in program.err)
            (folder / "late").mkdir()
            with Program(folder / "late", "serve", "--port", "0") as late:
                assert ask(port_of(late), "GET", "/readyz").body == b'{"status":"read-only"}'
            told = {
                each.check: each.finding for each in check_database(url, now=Clock().now()) if each.level == "problem"
            }
            assert "No space left on device" in told["database"]
            disk.empty()
            assert ask(port, "GET", "/readyz").status == 200
            assert ask(port, "POST", PLAYLISTS, token, {"name": "after"}).status == 200


def test_a_locked_table_delays_only_requests_that_need_it(folder: Path, database: Database) -> None:
    with (
        Program(folder, "serve", "--port", "0") as program,
        psycopg.connect(database.url) as admin,
        ThreadPoolExecutor(50) as clients,
    ):
        port, tokens = port_of(program), database.tokens
        admin.execute("LOCK TABLE playlist IN ACCESS EXCLUSIVE MODE")
        locked = [
            clients.submit(ask, port, "GET", f"{PLAYLISTS}?perPage={1 + number}", tokens[number % 4])
            if number % 2
            else clients.submit(ask, port, "POST", PLAYLISTS, tokens[number % 4], {"name": f"locked {number}"})
            for number in range(50)
        ]
        others: list[Response] = []
        while not all(one.done() for one in locked):
            others.append(ask(port, "GET", f"/api/v1/albums?page={1 + len(others)}", tokens[0]))
            others.append(ask(port, "POST", "/api/v1/artists", tokens[0], {"name": f"Artist {len(others)}"}))
            others.append(ask(port, "GET", "/readyz"))
        assert {one.status for one in others} == {200, 201}
        assert max(one.seconds for one in others) < READY
        assert len(others) > 50
        assert {one.result().status for one in locked} == {503}
        assert max(one.result().seconds for one in locked) < RESPONSE
        admin.rollback()
        assert ask(port, "POST", PLAYLISTS, tokens[0], {"name": "after"}).status == 200
