"""Connections to a server at its limits: kept and busy ones, floods, failed handshakes, no descriptors."""

import asyncio
import errno
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network import acceptor
from musicsvc.server.process import resources
from musicsvc.store.engine.store import Store
from tests.server.conftest import Start
from tests.support import waiting
from tests.support.bounds import Bounds
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND, check_sound
from tests.support.program import Program, until
from tests.support.prometheus import scraped, total
from tests.support.raw_connection import Wire, connected, request
from tests.support.serving import Client, StartServer, person

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

GET = request("GET", ALBUMS)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


async def ask(wire: Wire) -> int:
    await wire.send(GET)
    return (await wire.answer()).status


async def test_kept_connections_make_room_and_busy_ones_do_not(
    store: Store, clock: Clock, start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(server={"max_connections": 3})
    _, token = person(store, clock, "ann@label.test")
    post = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=SOUND)
    client = await start_server(settings)
    async with AsyncExitStack() as opened:

        async def enter() -> Wire:
            return await opened.enter_async_context(connected(client.root))

        kept = [await enter() for _ in range(3)]
        assert [await ask(wire) for wire in kept] == [200] * 3
        busy = [await enter() for _ in range(3)]
        for wire in busy:
            await wire.send(post[:-1])
        assert [await wire.rest() for wire in kept] == [b""] * 3
        await asyncio.sleep(0.1)
        for raw in (b"", GET, post[:-1]):
            refused = await enter()
            await refused.send(raw)
            answer = await refused.answer()
            assert (answer.status, answer.headers["Retry-After"], answer.headers["Connection"]) == (503, "1", "close")
            assert list(answer.json) == ["status", "message", "errors"]
            assert await refused.rest() == b""
        await busy[0].send(post[-1:])
        check_sound(await busy[0].answer())
        assert await ask(await enter()) == 200
        assert await busy[0].rest() == b""
        for wire in busy[1:]:
            await wire.send(post[-1:])
            assert (await wire.answer()).status == 201
        figures = await scraped(client)
        assert total(figures, "musicsvc_connections_refused_total") == 3
        assert total(figures, "musicsvc_requests_total", status="503") == 0  # no request was read
    assert caplog.messages[0] == "server.max_connections is reached; connections rejected so far: 1"


def test_the_process_takes_the_descriptors_that_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    assert resources.max_connections() == 768
    resources.raise_file_limit()
    assert (limits[-1], resources.max_connections()) == ((4096, 4096), 3840)
    for hard in (resource.RLIM_INFINITY, 1 << 20):
        limits.append((256, hard))
        assert resources.max_connections() == 128
        resources.raise_file_limit()
        assert limits[-1] == (65_536, hard)
    limits.append((resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert resources.max_connections() == 65_536
    known = len(limits)
    monkeypatch.setattr(resources, "resource", None)  # as on Windows
    resources.raise_file_limit()
    assert (resources.max_connections(), len(limits)) == (65_536, known)


def seconds_of_work(program: Program) -> float:
    fields = Path(f"/proc/{program.worker}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def descriptors_of(program: Program) -> int:
    return len(list(Path(f"/proc/{program.worker}/fd").iterdir()))


def sockets(program: Program) -> int:
    """Count the connections and listeners of the process, except the local ones to PostgreSQL."""
    local = {f"socket:[{line.split()[6]}]" for line in Path("/proc/net/unix").read_text("utf-8").splitlines()[1:]}
    links = []
    for entry in Path(f"/proc/{program.worker}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:  # closed in the meantime
            continue
    return sum(link.startswith("socket:") and link not in local for link in links)


class AbortingListener(socket.socket):
    """A listener whose first connection is closed by the client while it is queued."""

    aborted = False

    def accept(self) -> tuple[socket.socket, Any]:
        if not self.aborted:
            self.aborted = True
            raise ConnectionAbortedError(errno.ECONNABORTED, "Software caused connection abort")
        return super().accept()


async def test_a_connection_closed_while_it_is_queued_is_passed_over(
    anonymous: Client, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    listener = AbortingListener(fileno=serving.listen("127.0.0.1", 0).detach())
    app = App(Settings(), store, clock, anonymous.root)
    await app.start(listener)
    answer = await anonymous.get(f"http://127.0.0.1:{listener.getsockname()[1]}/healthz")
    await app.stop()
    assert (answer.status, listener.aborted, caplog.text) == (200, True, "")


class ExhaustedListener(socket.socket):
    """A listener of a process that has no descriptor left."""

    asked = False

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked = True
        raise OSError(errno.EMFILE, "Too many open files")


class LastDescriptor(socket.socket):
    """A listener of a process that has no descriptor left once it has accepted all that wait."""

    def accept(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except BlockingIOError:
            raise OSError(errno.EMFILE, "Too many open files") from None


async def test_a_connection_that_takes_the_last_descriptor_ends_no_other_one(
    anonymous: Client, store: Store, clock: Clock
) -> None:
    listener = LastDescriptor(fileno=serving.listen("127.0.0.1", 0).detach())
    app = App(Settings(), store, clock, anonymous.root)
    await app.start(listener)
    root = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with connected(root) as kept, connected(root) as last:
        assert [await ask(each) for each in (kept, last, kept)] == [200] * 3
    await app.stop()


async def test_a_server_that_waits_for_descriptors_can_stop(
    anonymous: Client, store: Store, clock: Clock, bounds: Bounds
) -> None:
    bounds(accept_retry_seconds=0.2)
    loop, failures = asyncio.get_running_loop(), list[Any]()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    listener = ExhaustedListener(fileno=serving.listen("127.0.0.1", 0).detach())
    app = App(Settings(), store, clock, anonymous.root)
    await app.start(listener)
    _, writer = await asyncio.open_connection(*listener.getsockname())
    await waiting.until(lambda: listener.asked)
    await app.stop()
    after = loop.create_future()  # done after the time at which the server would have tried again
    loop.call_later(acceptor.RETRY_SECONDS, after.set_result, None)
    await after
    writer.close()
    assert failures == []


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="sets another process's limit")
async def test_a_process_without_descriptors_waits_and_goes_on(start: Start, stack: ExitStack) -> None:
    program = start()
    async with connected(program.root) as kept:
        assert await ask(kept) == 200
        taken = descriptors_of(program)
        before = resource.prlimit(program.worker, resource.RLIMIT_NOFILE, (taken + 2, 20_000))
        port = int(program.root.rpartition(":")[2])
        flood = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(200)]
        worked = seconds_of_work(program)
        await asyncio.sleep(0.8)
        assert seconds_of_work(program) - worked < 0.4
        resource.prlimit(program.worker, resource.RLIMIT_NOFILE, before)
        for client in flood:
            client.close()
        began = time.monotonic()
        async with connected(program.root) as wire:
            assert await ask(wire) == 200
        assert time.monotonic() - began < 5
    assert program.process.poll() is None
    text = "cannot accept connections (Too many open files); check the limit of open files"
    assert program.err.count(text) == program.err.count("cannot accept connections") == 1


async def test_a_flood_beyond_the_cap_keeps_nobody_out_and_leaves_nothing(start: Start, stack: ExitStack) -> None:
    program = start(max_connections=50)
    port = int(program.root.rpartition(":")[2])
    async with connected(program.root) as wire:
        assert await ask(wire) == 200
        before = sockets(program) - 1
    for number in range(300):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        if number % 3:
            client.sendall(GET[: number % len(GET)])
        if number % 50 == 49:
            async with connected(program.root) as wire:
                assert await ask(wire) == 200
    assert sockets(program) <= before + 50
    stack.close()
    await asyncio.sleep(0.05)  # the last connection of this test is being closed
    until(lambda: sockets(program) == before)


@pytest.mark.slow
async def test_failed_handshakes_leave_nothing(
    start: Start, stack: ExitStack, certified: tuple[str, str], authority: trustme.CA
) -> None:
    cert, key = certified
    options = ("--tls-cert", cert, "--tls-key", key)
    program = start(*options, max_connections=20, handshake_timeout=0.5)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    port = int(program.root.rpartition(":")[2])
    async with connected(program.root, trusting) as wire:
        assert await ask(wire) == 200
        before = sockets(program) - 1
    for number in range(60):  # some are evicted, some are rejected, some close the connection
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        client.sendall((b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n")[number % 3])
        if number % 7 == 0:
            client.close()
    async with connected(program.root, trusting) as wire:
        assert await ask(wire) == 200
        assert sockets(program) <= before + 20 + 20  # those that have got a response are open for a moment longer
        until(lambda: sockets(program) == before + 1)
        assert await ask(wire) == 200
    await asyncio.sleep(0.05)  # the last connection of this test is being closed
    until(lambda: sockets(program) == before)
    assert "Traceback" not in program.err


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="reads another process's limit")
async def test_serve_takes_the_descriptors_that_the_system_allows(start: Start) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        program = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    async with connected(program.root) as wire:
        assert await ask(wire) == 200
    soft, hard = resource.prlimit(program.worker, resource.RLIMIT_NOFILE)
    assert soft == min(hard, resources.PLENTY)
