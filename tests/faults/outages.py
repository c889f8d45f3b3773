"""A PostgreSQL server that fails, and clients that record how long each response takes."""

import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.sql import fetch
from musicsvc.store.schema import schema
from tests.support import postgres
from tests.support.program import PATIENCE, until

psycopg = pytest.importorskip("psycopg")
TIMEOUT = 60.0


class Response(NamedTuple):
    """A response, or status 0 if the connection broke."""

    sent: float  # in seconds of time.monotonic
    seconds: float
    method: str
    path: str
    status: int
    retry_after: str | None
    body: bytes


def ask(port: int, method: str, path: str, token: str = "", body: object = None) -> Response:
    """Send a request on a new connection."""
    sent = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    status, retry_after, content = 0, None, b""
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        status, retry_after, content = answer.status, answer.getheader("Retry-After"), answer.read()
    except OSError:
        pass
    finally:
        connection.close()
    return Response(sent, time.monotonic() - sent, method, path, status, retry_after, content)


@dataclass
class Traffic:
    """Clients that read and write, one request after another, until the end of the block; and one of /readyz."""

    port: int
    tokens: Sequence[str]
    responses: list[Response] = field(default_factory=list)
    checks: list[Response] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)  # names of playlists
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def _work(self, number: int) -> None:
        turn, token = 0, self.tokens[number % len(self.tokens)]
        while not self._ended.is_set():
            turn += 1
            if turn % 2:
                name = f"{number}/{turn}"
                answer = ask(self.port, "POST", "/api/v1/playlists", token, {"name": name})
                if answer.status == 200:
                    self.acknowledged.append(name)
            else:
                answer = ask(self.port, "GET", f"/api/v1/{('albums', 'playlists', 'genres')[number % 3]}", token)
            self.responses.append(answer)
            self._ended.wait(0.02 if answer.status == 200 else 0.3)

    def _check(self) -> None:
        while not self._ended.is_set():
            self.checks.append(ask(self.port, "GET", "/readyz"))
            self._ended.wait(0.1)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(20)]
        self._threads.append(threading.Thread(target=self._check))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def since(self, moment: float) -> list[Response]:
        """Return the responses to requests that were sent after this moment."""
        return [response for response in tuple(self.responses) if response.sent > moment]

    def lost(self, url: str) -> set[str]:
        """Return the names of playlists that were acknowledged and are not in the database."""
        with opening.connect(url) as store:
            return set(self.acknowledged) - {name for (name,) in store.read(lambda: fetch(NAMES)).result()}


NAMES = "SELECT name FROM playlist"


class Database:
    """A PostgreSQL server of one test, with the schema and some accounts."""

    def __init__(self, accounts: int = 4) -> None:
        self.server = postgres.Server()
        self.url = postgres.database_url(self.server.folder, "postgres")
        self.tokens = _prepare(self.url, accounts)

    def on_disk(self, folder: Path) -> tuple[str, list[str]]:
        """Create another database, with its files in this folder. Return its URL, and the tokens of its accounts."""
        place = folder / "database"
        place.mkdir()
        if os.geteuid() == 0:
            shutil.chown(place, (self.server.folder / "data").stat().st_uid)
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
            admin.execute("CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
        url = postgres.database_url(self.server.folder, "small")
        return url, _prepare(url, accounts=1)

    @property
    def pids(self) -> list[int]:
        """The ids of its processes, the postmaster first."""
        return self.server.processes

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes in the block, the first one first, which then starts no others."""
        stopped = self.pids[:1]
        os.kill(stopped[0], signal.SIGSTOP)
        stopped = self.pids
        try:
            for pid in stopped[1:]:
                with suppress(ProcessLookupError):  # a connection may end meanwhile
                    os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def restart(self) -> None:
        """Stop it as `pg_ctl -m immediate` does, without writing anything, and start it again."""
        os.kill(self.pids[0], signal.SIGQUIT)
        until(lambda: not (self.server.folder / "data" / "postmaster.pid").exists())
        self.server.restart()

    def close(self) -> None:
        self.server.stop()


def _prepare(url: str, accounts: int) -> list[str]:
    """Create the tables and accounts. Return their tokens."""
    schema.upgrade(url)
    with opening.connect(url) as store:
        return store.write(lambda: [_person(number) for number in range(accounts)]).result()


def _person(number: int) -> str:
    now = Clock().now()
    user = users.create(f"person{number}@label.test", now=now)
    api_access.grant(user, plays=True, now=now)
    return tokens.create(user, "test", now=now)[1]
