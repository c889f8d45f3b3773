"""Requests that chance makes, to the real program: whatever comes, no answer is a fault of the server, all are sound.

The long form sends 100,000; a seed replays it:

    pytest tests/server/network/test_fuzzing.py --slow --seed 7
"""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from musicsvc.store import opening
from musicsvc.store.seeding import fixtures
from tests.fuzzing import judging
from tests.fuzzing.asked import Asked, Asking
from tests.fuzzing.mangled import Mangling
from tests.support.raw_connection import connected, request

if TYPE_CHECKING:
    from tests.server.conftest import Start
    from tests.support.serving import Answer

COUNT, SLOW_COUNT = 1_500, 100_000
AT_ONCE = 4
PATIENCE = 30.0
MOST_READ = 1 << 22


@pytest.fixture
def tokens(store_url: str) -> dict[str, str]:
    """Those of the small world, whose time runs from now."""
    with opening.connect(store_url) as store:
        return store.write(lambda: fixtures.load(now=time.time_ns() // 1000)).result().tokens


class Fuzzer:
    """One of several that send at the same time, each with its own chance and connection."""

    def __init__(self, root: str, seed: str, tokens: dict[str, str]) -> None:
        self._address = root.rpartition("/")[2].rpartition(":")
        self._chance = Random(seed)
        self._asking = Asking(self._chance, tokens)
        self._mangling = Mangling(self._chance, self._asking)
        self._kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.statuses: Counter[str] = Counter()
        self.faults: list[str] = []

    async def send(self, count: int) -> None:
        """Send requests, and record wrong answers."""
        for number in range(count):
            (kind,) = self._chance.choices(("asked", "mangled", "ambiguous"), (10, 9, 1))
            asked, raw = None, b""
            if kind == "asked":
                asked = self._asking.make()
            else:
                raw = self._mangling.make() if kind == "mangled" else self._mangling.ambiguous()
            try:
                found = await (self._alone(raw) if asked is None else self._exchange(asked))
                if kind == "ambiguous":
                    assert [answer.status for answer in found] == [400]
            except Exception as fault:  # noqa: BLE001 - any fault is reported with the request
                self.faults.append(f"request {number}: {fault!r:.500} after {asked or raw!r:.2000}")
                self._close()
                found = []
            self.statuses.update([f"{kind} {answer.status}" for answer in found] or [f"{kind} closed"])
        self._close()

    def _close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    async def _exchange(self, asked: Asked) -> list[Answer]:
        """Over a connection that is kept as long as the server keeps it."""
        for _ in range(2):
            fresh = self._kept is None
            reader, writer = self._kept = self._kept or await self._connect()
            writer.write(asked.raw)
            try:
                async with asyncio.timeout(PATIENCE):
                    raw = await _one(reader, asked)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                self._close()
                if fresh:
                    raise
        (answer,) = judging.answers(raw)
        judging.judge_as_promised(answer, asked)
        if answer.headers.get("Connection") == "close":
            self._close()
        return [answer]

    async def _alone(self, raw: bytes) -> list[Answer]:
        """Over a connection of its own, to its end."""
        reader, writer = await self._connect()
        received, whole = b"", True
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(raw)
                with suppress(OSError):
                    writer.write_eof()
                while piece := await reader.read(1 << 16):
                    received += piece
        except ConnectionError:
            whole = False
        finally:
            # Closed so, it is gone at once: there are not ports enough to let each rest for a minute.
            line = writer.get_extra_info("socket")
            with suppress(OSError):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()
        found = judging.answers(received, whole=whole)
        for answer in found:
            judging.judge(answer)
        return found

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._address
        return await asyncio.open_connection(host, int(port), limit=MOST_READ)


async def _one(reader: asyncio.StreamReader, asked: Asked) -> bytes:
    """The bytes of one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100 "):
        head = await reader.readuntil(b"\r\n\r\n")
    bodyless = asked.method == "HEAD" or head.startswith(b"HTTP/1.1 304 ")
    length = 0 if bodyless else int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def test_no_request_whatever_is_answered_with_a_fault_of_the_server(
    start: Start, tokens: dict[str, str], seed: int, slow: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    program = start()
    root = program.root
    fuzzers = [Fuzzer(root, f"{seed}/{number}", tokens) for number in range(AT_ONCE)]
    count = SLOW_COUNT if slow else COUNT
    began = time.monotonic()
    await asyncio.gather(*(fuzzer.send(count // AT_ONCE) for fuzzer in fuzzers))
    took = time.monotonic() - began
    faults = [f"fuzzer {number}, {fault}" for number, fuzzer in enumerate(fuzzers) for fault in fuzzer.faults]
    assert not faults, "\n".join([f"--seed {seed}: {len(faults)} faults", *faults[:20]])
    async with connected(root) as wire:
        await wire.send(request("GET", "/readyz"))
        assert (await wire.answer()).status == 200
    assert program.end(signal.SIGTERM) == 0
    assert "Traceback" not in program.err
    assert '"level":"error"' not in program.err
    check = [sys.executable, "-m", "musicsvc", "db", "check"]
    checked = subprocess.run(check, capture_output=True, encoding="utf-8", check=False)  # noqa: ASYNC221 - nobody waits
    assert checked.returncode == 0, checked.stderr
    statuses: Counter[str] = sum((fuzzer.statuses for fuzzer in fuzzers), Counter())
    if slow:
        with capsys.disabled():
            sys.stdout.write(f"\n{count} sent in {took:.0f} s, --seed {seed}: {dict(sorted(statuses.items()))}\n")
