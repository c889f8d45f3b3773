"""Log writers: nobody waits for a reader of stderr, and lost lines are counted."""

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import MovableClock, isoformat
from musicsvc.server.logs.formatting import Formatter, Message
from musicsvc.server.logs.writer import MOST_WAITING, LineWriter, Listener, QueuedHandler
from tests.conftest import NOW
from tests.support.program import until

HELLO = {"time": NOW, "level": "warning", "message": "hello", "logger": "musicsvc"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_dropped_lines_are_counted_and_reported_once_writing_works_again(tmp_path: Path, clock: MovableClock) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    writer = LineWriter(descriptor, Formatter(text=False), clock)
    for number in range(43):
        writer.write(HELLO, wait=number % 2 == 0)
    assert writer.dropped == 43
    with (tmp_path / "log").open("wb") as file:
        os.dup2(file.fileno(), descriptor)
    for _ in range(2):
        writer.write(HELLO, wait=False)
    os.close(descriptor)
    found = [json.loads(each) for each in (tmp_path / "log").read_text().splitlines()]
    assert [each["message"] for each in found] == [
        "hello",
        "log lines lost: 43; stderr was blocked or closed",
        "hello",
    ]
    assert (found[1]["lost"], found[1]["time"], writer.dropped) == (43, isoformat(NOW), 43)


def test_a_reader_that_stops_reading_blocks_no_caller(clock: MovableClock) -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing, Formatter(text=False), clock)
    with listening(writer) as handler:
        began = time.monotonic()
        for _ in range(2 * MOST_WAITING):
            handler.handle(logging.makeLogRecord({}))
        assert time.monotonic() - began < 5
        until(lambda: writer.dropped > 0)
        lost = writer.dropped
        os.set_blocking(reading, False)
        got: list[dict[str, Any]] = []
        rest = b""

        def read() -> bool:
            nonlocal rest
            *whole, rest = (rest + b"".join(_available(reading))).split(b"\n")
            got.extend(map(json.loads, whole))
            return sum(int(each.get("lost", 1)) for each in got) == 2 * MOST_WAITING

        until(read)
    os.close(writing)
    os.close(reading)
    assert sum(each["message"] == "hello" for each in got) == 2 * MOST_WAITING - lost


@contextmanager
def listening(writer: LineWriter) -> Iterator[QueuedHandler]:
    """Write what the handler queues on a thread, as a worker does."""
    handler = QueuedHandler(writer, lambda _: dict(HELLO))
    listener = Listener(handler, writer)
    listener.start()
    yield handler
    listener.stop()


def _available(reading: int) -> Iterator[bytes]:
    while True:
        try:
            yield os.read(reading, 1 << 16)
        except BlockingIOError:
            return


def test_a_process_without_threads_does_not_wait_for_a_reader(clock: MovableClock) -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing, Formatter(text=False), clock)
    for _ in range(2000):
        writer.write(HELLO | {"more": "x" * 100}, wait=False)
    assert writer.dropped > 0
    os.close(reading)
    writer.write(HELLO, wait=False)  # nobody will ever read it
    os.close(writing)
    writer.write(HELLO, wait=False)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A file for log lines: its descriptor and its path."""
    with (tmp_path / "log").open("wb", buffering=0) as file:
        yield file.fileno(), tmp_path / "log"


def lines(file: Path) -> list[tuple[str, int | None]]:
    """Return the message of each line and the number of lines that it reports as lost."""
    found = [json.loads(each) for each in file.read_text().splitlines()]
    return [(each["message"], each.get("lost")) for each in found]


LOST = "log lines lost: {}; stderr was blocked or closed"


def test_a_message_that_cannot_be_formatted_is_dropped_alone(log: tuple[int, Path], clock: MovableClock) -> None:
    descriptor, file = log
    writer = LineWriter(descriptor, Formatter(text=False), clock)
    for message in (HELLO, HELLO | {"time": "now"}, HELLO):
        writer.write(message)
    assert writer.dropped == 1
    assert lines(file) == [("hello", None), ("hello", None), (LOST.format(1), 1)]
    assert json.loads(file.read_text().splitlines()[2]) == {
        "time": isoformat(NOW),
        "level": "warning",
        "message": LOST.format(1),
        "logger": "musicsvc",
        "lost": 1,
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_report_of_dropped_lines_that_fails_is_repeated(log: tuple[int, Path], clock: MovableClock) -> None:
    descriptor, file = log
    kept = os.dup(descriptor)

    class Filling(Formatter):
        """A formatter that is called for a report when the disk becomes full."""

        def render(self, message: Message) -> bytes:
            if "lost" in message:
                full = os.open("/dev/full", os.O_WRONLY)
                os.dup2(full, descriptor)
                os.close(full)
            return super().render(message)

    writer = LineWriter(descriptor, Filling(text=False), clock)
    for _ in range(2):
        writer.drop()
    writer.write(HELLO)
    os.dup2(kept, descriptor)
    os.close(kept)
    assert lines(file) == [("hello", None)]
    writer.formatter = Formatter(text=False)
    for _ in range(3):
        writer.drop()
    for _ in range(2):
        writer.write(HELLO)
    assert lines(file)[1:] == [("hello", None), (LOST.format(5), 5), ("hello", None)]
    assert writer.dropped == 5


def test_a_stderr_that_does_not_block_is_waited_for(clock: MovableClock) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    writer = LineWriter(writing, Formatter(text=False), clock)
    count = 1_000
    thread = threading.Thread(target=lambda: deque(map(writer.write, [HELLO] * count)))
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        assert [json.loads(pipe.readline())["message"] for _ in range(count)] == ["hello"] * count
    thread.join()
    os.close(writing)
    assert writer.dropped == 0
