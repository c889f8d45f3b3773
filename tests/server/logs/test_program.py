"""The log of `musicsvc serve` on stderr: always valid lines, and no request that depends on them."""

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from tests.support import preloaded
from tests.support.preloaded import Process
from tests.support.program import PATIENCE, Program, until
from tests.support.prometheus import read, total
from tests.support.raw_connection import Wire, connected, request
from tests.support.reserved_port import reserved_port
from tests.support.serving import person

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
FIELDS = ["time", "level", "message", "logger", "request_id", "account", "token", "address", "method", "route"]
FIELDS += ["status", "milliseconds", "bytes"]
ALBUMS = "/api/v1/albums"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings for programs on the test's database that log each request."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_LOG__REQUESTS", "true")
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")  # the first one is logged after three seconds
    return tmp_path


@contextmanager
def served(stderr: int | None, *options: str) -> Iterator[tuple[str, Process]]:
    """Run a server with this stderr (None: closed). Yield its root and process."""
    with reserved_port() as port:
        arguments = ["serve", "--port", str(port), *options]
        program: Process
        if stderr is None:
            line = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "musicsvc", *arguments]
            program = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        else:
            program = preloaded.start(arguments, stderr=stderr)
        try:
            until(lambda: listens(port) or program.poll() is not None)
            yield f"http://127.0.0.1:{port}", program
        finally:
            program.terminate()
            program.wait(PATIENCE)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


async def ask(wire: Wire, method: str = "GET", target: str = ALBUMS, *headers: str) -> int:
    await wire.send(request(method, target, *headers))
    return (await wire.answer()).status


async def lost(wire: Wire) -> float:
    """Return the number of lost lines."""
    await wire.send(request("GET", "/metrics"))
    figures = read((await wire.answer()).body.decode())
    return total(figures, "musicsvc_log_lines_dropped_total")


def told(program: Program) -> list[dict[str, Any]]:
    """Return all lines but the first one, which names the address, and the last one, which says that it stopped."""
    return [json.loads(line) for line in program.err.splitlines()[1:] if "stopped (" not in line]


@pytest.mark.slow
async def test_each_request_is_one_valid_line_whatever_its_headers_are(
    folder: Path, store_url: str, clock: MovableClock
) -> None:
    clock.advance(time.time_ns() // 1000 - clock.now())
    with opening.connect(store_url) as store:
        account, token = person(store, clock, "ann@label.test")
    hostile = ["\x1b[31mred", '"quotes\\', "é\udcff\udcfe", "x" * 5000, "{'a': 1}", "%s %d {0}", "\u2028\u202e"]
    names = ("User-Agent", "Referer", "X-Request-Id", "X-Forwarded-For", "Cookie", "Authorization")
    with Program(folder, "serve", "--port", "0", "--workers", "2") as program:
        statuses = []
        for value in hostile:
            for name in names:
                async with connected(program.root) as wire:
                    statuses.append(await ask(wire, "GET", f"{ALBUMS}?token={token}", f"{name}: {value}"))
        async with connected(program.root) as wire:
            statuses += [await ask(wire, "GET", "/api/v1/users/me?geheim=1", f"Authorization: Bearer {token}")]
            statuses += [await ask(wire, "GET", "/%0d%0a%1b%5b31mgeheim"), await ask(wire, "DELETE", ALBUMS)]
            await wire.send(request("GET", ALBUMS, f"Authorization: Bearer {token}\x00geheim"))
            statuses.append((await wire.answer()).status)
        assert program.end(signal.SIGTERM) == 0
        lines = told(program)
        assert sorted(line["status"] for line in lines) == sorted(statuses)
        assert all(list(line) == FIELDS for line in lines)
        mine = [line for line in lines if line["route"] == "/api/v1/users/me"]
        assert [(line["account"], line["method"], line["status"]) for line in mine] == [(account, "GET", 200)]
        assert mine[0]["bytes"] > 20
        assert mine[0]["milliseconds"] > 0
        assert [line["status"] for line in lines if line["route"] is None].count(404) == 1
        for secret in (token, token[5:], "geheim", "\x1b", "User-Agent"):
            assert secret not in program.err


@pytest.mark.slow
async def test_the_log_of_several_processes_stays_whole() -> None:
    """Lines of several processes in one pipe are never mixed, and none is missing at the end."""
    reading, writing = os.pipe()
    with served(writing, "--workers", "2") as (root, program), os.fdopen(reading, "rb") as pipe:
        os.close(writing)
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.extend(pipe))
        reader.start()
        async with connected(root) as one, connected(root) as two:
            for _ in range(100):
                for wire in (one, two):
                    await wire.send(request("GET", ALBUMS, f"X-Request-Id: {'x' * 128}") * 4)
                for wire in (one, two):
                    assert [(await wire.answer()).status for _ in range(4)] == [200] * 4
        program.terminate()
        program.wait(PATIENCE)
        reader.join(PATIENCE)
    assert [json.loads(line)["status"] for line in got[1:-1]] == [200] * 800
    assert json.loads(got[-1])["message"] == "stopped (SIGTERM)"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_full_disk_delays_no_request(workers: str) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with served(full, "--workers", workers) as (root, program):
        os.close(full)
        async with connected(root) as wire:
            assert [await ask(wire) for _ in range(50)] == [200] * 50
            async with asyncio.timeout(PATIENCE):
                while await lost(wire) < 50:  # noqa: ASYNC110 - another process tells its own within a second
                    await asyncio.sleep(0.1)
        program.terminate()
        assert program.wait(PATIENCE) == 0


@pytest.mark.slow
async def test_a_closed_stderr_delays_no_request_and_harms_no_file(store_url: str) -> None:
    with served(None) as (root, program):
        async with connected(root) as wire:
            assert [await ask(wire) for _ in range(50)] == [200] * 50
        program.terminate()
        assert program.wait(PATIENCE) == 0
    opening.connect(store_url).close()


@pytest.mark.slow
async def test_a_reader_that_closes_or_stops_reading_delays_no_request() -> None:
    reading, writing = os.pipe()
    with served(writing) as (root, program):
        os.close(writing)
        async with connected(root) as wire:
            for _ in range(60):
                await wire.send(request("GET", "/healthz") * 20)
                assert [(await wire.answer()).status for _ in range(20)] == [200] * 20
            os.close(reading)
            assert [await ask(wire) for _ in range(20)] == [200] * 20
        program.terminate()
        assert program.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_terminal_gets_lines_for_people() -> None:
    ours, theirs = pty.openpty()
    with served(theirs) as (root, _):
        host = root.removeprefix("http://").split(":")
        with socket.create_connection((host[0], int(host[1]))) as client:
            client.sendall(request("GET", "/healthz", "Connection: close"))
            while client.recv(4096):
                pass
        seen = b""
        while b"[info" not in seen or not seen.endswith(b"\n"):
            seen += os.read(ours, 4096)
    os.close(ours)
    os.close(theirs)
    first, line = seen.decode().splitlines()[:2]
    assert first == f"musicsvc listens on {root} (API documentation: {root}/docs)"
    assert "[info     ] request [musicsvc.requests]" in line
    assert "route=/healthz status=200" in line
    assert "\x1b" not in line
