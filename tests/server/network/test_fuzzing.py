"""Random requests to the real program: no answer is an internal error, and all are valid.

The long form sends 100,000; a seed replays it:

    pytest tests/server/network/test_fuzzing.py --long --seed 7
"""

import asyncio
import signal
import socket
import struct
import sys
import time
from collections import Counter
from contextlib import suppress
from random import Random

import pytest

from musicsvc.store import opening
from musicsvc.store.seeding import fixtures
from tests.fuzzing import checks
from tests.fuzzing.malformed import MalformedGenerator
from tests.fuzzing.requests import FuzzRequest, RequestGenerator
from tests.server.conftest import Start
from tests.support.command import run_in_process
from tests.support.examples import examples
from tests.support.raw_connection import connected, request
from tests.support.serving import Answer

pytestmark = pytest.mark.slow


COUNT, SLOW_COUNT = 3_750, 100_000
AT_ONCE = 4
PATIENCE = 30.0
MOST_READ = 1 << 22


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Start two workers; in the long form also one."""
    if "workers" in metafunc.fixturenames:
        metafunc.parametrize("workers", ["2", "1"] if metafunc.config.getoption("--long") else ["2"])


@pytest.fixture
def tokens(store_url: str) -> dict[str, str]:
    """Load the fixtures, valid from now; return their tokens."""
    with opening.connect(store_url) as store:
        return store.write(lambda: fixtures.load(now=time.time_ns() // 1000)).result().tokens


class Fuzzer:
    """One of several concurrent senders, each with its own random generator and connection."""

    def __init__(self, root: str, seed: str, tokens: dict[str, str]) -> None:
        self._address = root.rpartition("/")[2].rpartition(":")
        self._chance = Random(seed)
        self._requests = RequestGenerator(self._chance, tokens)
        self._malformed = MalformedGenerator(self._chance, self._requests)
        self._kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.statuses: Counter[str] = Counter()
        self.faults: list[str] = []

    async def send(self, count: int) -> None:
        """Send this many requests and record wrong answers."""
        for number in range(count):
            (kind,) = self._chance.choices(("sent", "mangled", "ambiguous"), (10, 9, 1))
            sent, raw = None, b""
            if kind == "sent":
                sent = self._requests.make()
            else:
                raw = self._malformed.make() if kind == "mangled" else self._malformed.ambiguous()
            try:
                found = await (self._alone(raw) if sent is None else self._exchange(sent))
                if kind == "ambiguous":
                    assert [answer.status for answer in found] == [400]
            except Exception as fault:  # noqa: BLE001 - every failure is reported with the request
                self.faults.append(f"request {number}: {fault!r:.500} after {sent or raw!r:.2000}")
                self._close()
                found = []
            self.statuses.update([f"{kind} {answer.status}" for answer in found] or [f"{kind} closed"])
        self._close()

    def _close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    async def _exchange(self, sent: FuzzRequest) -> list[Answer]:
        """Exchange over a connection that is kept as long as the server keeps it."""
        for _ in range(2):
            fresh = self._kept is None
            reader, writer = self._kept = self._kept or await self._connect()
            writer.write(sent.raw)
            try:
                async with asyncio.timeout(PATIENCE):
                    raw = await _one(reader, sent)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                self._close()
                if fresh:
                    raise
        (answer,) = checks.answers(raw)
        checks.check_against_document(answer, sent)
        if answer.headers.get("Connection") == "close":
            self._close()
        return [answer]

    async def _alone(self, raw: bytes) -> list[Answer]:
        """Exchange over a separate connection, read to its end."""
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
            # Aborted, so that its port is free at once: there are too few ports for TIME_WAIT.
            line = writer.get_extra_info("socket")
            with suppress(OSError):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()
        found = checks.answers(received, whole=whole)
        for answer in found:
            checks.check_answer(answer)
        return found

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._address
        return await asyncio.open_connection(host, int(port), limit=MOST_READ)


async def _one(reader: asyncio.StreamReader, sent: FuzzRequest) -> bytes:
    """Read the bytes of one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100 "):
        head = await reader.readuntil(b"\r\n\r\n")
    bodyless = sent.method == "HEAD" or head.startswith(b"HTTP/1.1 304 ")
    length = 0 if bodyless else int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


@pytest.mark.on_both
async def test_no_request_whatever_is_answered_with_a_fault_of_the_server(
    start: Start, tokens: dict[str, str], seed: int, workers: str, long: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    program = start("--workers", workers)
    root = program.root
    fuzzers = [Fuzzer(root, f"{seed}/{number}", tokens) for number in range(AT_ONCE)]
    count = SLOW_COUNT if long else examples(COUNT)
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
    checked = run_in_process(["db", "check"])
    assert checked.returncode == 0, checked.stderr
    statuses: Counter[str] = sum((fuzzer.statuses for fuzzer in fuzzers), Counter())
    if long:
        with capsys.disabled():
            found = dict(sorted(statuses.items()))
            sys.stdout.write(f"\n{count} sent to {workers} workers in {took:.0f} s, --seed {seed}: {found}\n")
