"""Log writers: nobody waits for a reader of stderr, and lost lines are counted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from musicsvc.clock import MovableClock, isoformat
from musicsvc.server.logs.formatting import Formatter
from musicsvc.server.logs.writer import MOST_WAITING, LogWriter, QueuedLogWriter
from tests.conftest import NOW
from tests.support.program import until

if TYPE_CHECKING:
    from collections.abc import Iterator


HELLO = {"time": NOW, "level": "warning", "message": "hello", "logger": "musicsvc"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_dropped_lines_are_counted_and_reported_once_writing_works_again(tmp_path: Path, clock: MovableClock) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    writer = LogWriter(descriptor, Formatter(text=False), clock)
    for _ in range(3):
        writer.put(HELLO)
    writer.write([HELLO] * 40)
    assert writer.dropped == 43
    with (tmp_path / "log").open("wb") as file:
        os.dup2(file.fileno(), descriptor)
    for _ in range(2):
        writer.put(HELLO)
    os.close(descriptor)
    found = [json.loads(each) for each in (tmp_path / "log").read_text().splitlines()]
    assert [each["message"] for each in found] == [
        "hello",
        "43 log lines were lost: stderr was blocked or closed",
        "hello",
    ]
    assert (found[1]["lost"], found[1]["time"], writer.dropped) == (43, isoformat(NOW), 43)


def test_a_reader_that_stops_reading_blocks_no_caller(clock: MovableClock) -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing, Formatter(text=False), clock)
    with QueuedLogWriter(writer) as queued:
        began = time.monotonic()
        for _ in range(2 * MOST_WAITING):
            queued.put(HELLO)
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


def _available(reading: int) -> Iterator[bytes]:
    while True:
        try:
            yield os.read(reading, 1 << 16)
        except BlockingIOError:
            return


def test_a_process_without_threads_does_not_wait_for_a_reader(clock: MovableClock) -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing, Formatter(text=False), clock)
    for _ in range(2000):
        writer.put(HELLO | {"more": "x" * 100})
    assert writer.dropped > 0
    os.close(reading)
    writer.put(HELLO)  # nobody will ever read it
    os.close(writing)
    writer.put(HELLO)
