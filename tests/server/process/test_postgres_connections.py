"""Programs whose database accepts few connections, or none for a while."""

import itertools
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import tokens
from musicsvc.store.engine.url import without_password
from musicsvc.store.models import Token
from tests.faults import callers
from tests.faults.callers import Caller, Connection
from tests.faults.outages import ask
from tests.support.databases import name_of
from tests.support.pgbouncer import pooled
from tests.support.postgres import limited_role
from tests.support.program import PATIENCE, Program, run, until

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.only_on("postgres")

WAITING = "waiting up to 10 s for a free connection to the database\n"
DATABASE = ("schema", "counts", "activity log")
CALLERS, REVOKED = 8, 2
PAUSE = 0.05  # seconds between two requests of a client
COMMANDS = (("init",), ("db", "upgrade"), ("db", "check"), ("user", "list"), ("plays", "recount", "--check"))


@contextmanager
def taken(url: str, number: int) -> Iterator[None]:
    """Hold this number of connections in the `with` block."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(psycopg.connect(url))
        yield


@pytest.fixture
def limited(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], str]]:
    """Return a function that gives the programs a role with this number of connections, and returns their URL."""
    with ExitStack() as stack:

        def limit(connections: int) -> str:
            url = stack.enter_context(limited_role(store_url, connections))
            monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
            return url

        yield limit


def test_a_command_that_finds_no_free_connection_waits_for_one(folder: Path, limited: Callable[[int], str]) -> None:
    with taken(limited(2), 2), ExitStack() as stack:
        program = stack.enter_context(Program(folder, "user", "create", "ann@label.test"))
        until(lambda: program.err == WAITING)
        assert program.process.poll() is None
        stack.pop_all()
    with program:
        assert program.process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_command_that_gets_no_connection_fails_in_one_line(limited: Callable[[int], str]) -> None:
    url = limited(1)
    with taken(url, 1):
        began = time.monotonic()
        done = run("user", "list")
        seconds = time.monotonic() - began
    assert 9 < seconds < 20, done.stderr
    refused = f"The database {without_password(url)} does not accept connections: "
    waiting, line, end = done.stderr.split("\n")
    assert (done.returncode, done.stdout, f"{waiting}\n", end) == (1, "", WAITING, "")
    assert line.startswith(f"Error: {refused}")
    assert "too many connections for role" in line


@contextmanager
def closed(url: str) -> Iterator[Callable[[], Any]]:
    """Let the database accept no connections until the function that is yielded is called."""
    name = name_of(url)
    with psycopg.connect(url.replace(f"/{name}?", "/postgres?"), autocommit=True) as admin:

        def allow(*, connections: bool) -> None:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {connections}')

        allow(connections=False)
        try:
            yield lambda: allow(connections=True)
        finally:
            allow(connections=True)


def test_a_server_waits_for_its_database(migrated: Path, store_url: str) -> None:
    line = "serve", "--port", "0", "--wait-for-database", "60"
    with closed(store_url) as reopen, Program(migrated, *line) as program:
        until(lambda: program.err)
        assert program.err.startswith("Waiting up to 60 s for the database. The database postgresql:")
        reopen()
        assert ask(port(program.root), "GET", "/readyz").status == 200
        assert program.err.count("\n") == 2
        assert program.end(signal.SIGTERM) == 0


@pytest.mark.usefixtures("migrated")
def test_a_server_whose_database_does_not_come_back_in_time_fails(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE__WAIT_TIMEOUT", "0.6")
    with closed(store_url):
        done = run("serve", "--port", "0")
    waiting, line, end = done.stderr.split("\n")
    assert (done.returncode, done.stdout, end) == (1, "", "")
    assert waiting.startswith("Waiting up to 0.6 s for the database. ")
    assert line.startswith("Error: The database postgresql:")


READS = ("albums", "tracks/1", "genres", "users/me", "playlists", "producer-intelligence/insights/artists/{artist}")


class Load:
    """Clients that read and write on some nodes, one request after another."""

    def __init__(self, url: str) -> None:
        """Create the accounts of the clients, and those of the tokens that are revoked meanwhile."""
        self._url = url
        with opening.connect(url) as store:
            self._accounts = store.write(lambda: callers.prepare(CALLERS + REVOKED, Clock().now())).result()
        states: list[dict[callers.Toggled, set[bool]]] = [{} for _ in range(CALLERS)]
        self._callers = [Caller(at, self._accounts[at], "load", states[at], pause=PAUSE) for at in range(CALLERS)]
        self._tokens = [account.token for account in self._accounts[CALLERS:]]
        self.reads: list[tuple[str, int]] = []

    @property
    def acknowledged(self) -> int:
        return sum(effect.acknowledged for caller in self._callers for effect in tuple(caller.effects))

    def _read(self, root: str, gone: threading.Event) -> None:
        for path in itertools.cycle(READS):
            if gone.wait(PAUSE):
                return
            account = self._accounts[len(self.reads) % CALLERS]
            answer = ask(port(root), "GET", f"/api/v1/{path.format(artist=account.artist)}", account.token)
            self.reads.append((path, answer.status))

    @contextmanager
    def on(self, *roots: str) -> Iterator[None]:
        """Let the clients read and write in the `with` block, each on one of these nodes."""
        gone = threading.Event()
        pairs = [
            (caller, Connection(port(root)))
            for caller, root in zip(self._callers, itertools.cycle(roots), strict=False)
        ]
        works = [partial(caller.work, connection, gone) for caller, connection in pairs]
        works += [partial(self._read, root, gone) for root in roots * 2]
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            gone.set()
            for thread in threads:
                thread.join(PATIENCE)
            for _, connection in pairs:
                connection.close()

    def revoke(self, *roots: str, by_command: bool = False) -> None:
        """Revoke a token through the first node. Check that all of these nodes of a machine refuse it from then on."""
        token = self._tokens.pop()
        for root in roots:
            assert ask(port(root), "GET", "/api/v1/users/me", token).status == 200
        with opening.connect(self._url) as store:
            token_id = store.read(lambda: Token.get(Token.digest == tokens.digest(token)).id).result()
        if by_command:
            done = run("token", "revoke", str(token_id))
            assert done.returncode == 0, done
        else:
            assert ask(port(roots[0]), "DELETE", f"/api/v1/access-tokens/{token_id}", token).status == 200
        assert [ask(port(root), "GET", "/api/v1/users/me", token).status for root in roots] == [401] * len(roots)

    def faults(self) -> list[str]:
        """Return a line for each refused request and each lost write."""
        with opening.connect(self._url) as store:
            return callers.faults(store, self._callers) + [
                f"{path}: {status}" for path, status in self.reads if status != 200
            ]


def port(root: str) -> int:
    return int(root.rpartition(":")[2])


@contextmanager
def nodes(folder: Path, number: int) -> Iterator[list[Program]]:
    """Start this number of nodes with two workers each."""
    with ExitStack() as stack:
        started = []
        for name in map(str, range(number)):
            (folder / name).mkdir()
            started.append(stack.enter_context(Program(folder / name, "serve", "--port", "0", "--workers", "2")))
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["4", "10"], ids=["that_fits", "that_is_too_large"])
def test_two_workers_of_a_role_with_ten_connections_refuse_nothing(
    folder: Path, store_url: str, limited: Callable[[int], str], budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Load(store_url)
    limited(10)
    monkeypatch.setenv("MUSICSVC_DATABASE__CONNECTIONS", budget)
    monkeypatch.setenv("MUSICSVC_LIMITS__ENABLED", "false")
    with nodes(folder, 1) as (node,):
        root = node.root
        with load.on(root):
            until(lambda: load.acknowledged > 60 and len(load.reads) > 60)
            load.revoke(root)
            until(lambda: load.acknowledged > 120)
        assert load.faults() == []
        assert node.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_two_nodes_behind_a_pooler_refuse_and_lose_nothing(
    folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Load(store_url)
    monkeypatch.setenv("MUSICSVC_LIMITS__LOCAL", "true")
    monkeypatch.setenv("MUSICSVC_LIMITS__TOKEN", "100000/minute")
    with pooled(store_url, folder / "pgbouncer", default_pool_size=6, server_idle_timeout=1) as url:
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
        monkeypatch.setenv("MUSICSVC_DATABASE_DIRECT_URL", store_url)
        with nodes(folder, 2) as started:
            roots = [node.root for node in started]
            with load.on(*roots):
                until(lambda: load.acknowledged > 60 and len(load.reads) > 60)
                for command in COMMANDS:
                    done = run(*command)
                    assert done.returncode == 0, done
                found = json.loads(run("doctor", "--json").stdout)["findings"]
                assert {each["level"] for each in found if each["check"] in DATABASE} == {"ok"}, found
                load.revoke(*roots)
                load.revoke(*reversed(roots), by_command=True)
                until(lambda: load.acknowledged > 200)
            assert load.faults() == []
            assert [node.end(signal.SIGTERM) for node in started] == [0, 0]
        copy = str(folder / "copy.db")
        for line in (("db", "copy", url, copy), ("db", "compare", url, copy)):
            done = run(*line)
            assert done.returncode == 0, done
            assert "not complete" not in done.stderr
