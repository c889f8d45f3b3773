"""Writes log lines to stderr, which may be blocked or closed. Lines that cannot be written are counted."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from musicsvc.server.logs.formatting import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from structlog.typing import EventDict

    from musicsvc.clock import Clock
    from musicsvc.server.logs.formatting import Formatter

MOST_WAITING = 4096  # lines
AT_ONCE = 512
GATHERING_SECONDS = 0.02
FLUSH_SECONDS = 2.0


class LogWriter:
    def __init__(self, descriptor: int, formatter: Formatter, clock: Clock) -> None:
        self.descriptor = descriptor
        self.formatter = formatter
        self._clock = clock
        self._counting = threading.Lock()
        self._in_line = False
        self._unreported = 0
        self.dropped = 0

    def put(self, message: EventDict) -> None:
        """Write the message at once, or drop it if that would block."""
        if self._is_writable(0):
            self.write([message])
        else:
            self.drop(1)

    def write(self, messages: list[EventDict]) -> None:
        """Write the messages, waiting while stderr is blocked. Then log how many lines were dropped earlier, if any."""
        for chunk, count in _chunks(filter(None, map(self._line, messages))):
            if not self._write_all(chunk):
                self.drop(count)
            elif self._unreported:
                self._report_dropped()

    def drop(self, count: int) -> None:
        with self._counting:
            self.dropped += count
            self._unreported += count

    def _line(self, message: EventDict) -> bytes:
        try:
            return self.formatter.render(message)
        except Exception:  # noqa: BLE001 - str() of any value may fail
            self.drop(1)
            return b""

    def _report_dropped(self) -> None:
        with self._counting:
            count, self._unreported = self._unreported, 0
        message: EventDict = {
            "time": self._clock.now(),
            "level": "warning",
            "message": f"log lines lost: {count}; stderr was blocked or closed",
            "logger": "musicsvc",
            "lost": count,
        }
        if not self._write_all(self.formatter.render(message)):
            with self._counting:
                self._unreported += count

    def _write_all(self, chunk: bytes) -> bool:
        """Write the chunk, after a line break if the last write ended within a line. Return False if writing fails."""
        left = b"\n" + chunk if self._in_line else chunk
        try:
            while left:
                try:
                    left = left[os.write(self.descriptor, left) :]
                    self._in_line = bool(left)
                except BlockingIOError:
                    self._is_writable(None)
        except OSError:
            return False
        return True

    def _is_writable(self, milliseconds: int | None) -> bool:
        """Wait up to `milliseconds`, or forever for None. Return whether a line can be written without blocking."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        return bool(poll.poll(milliseconds))


class QueuedLogWriter:
    """Writes messages on a separate thread, so that a slow disk or reader blocks no request."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._queue: SimpleQueue[EventDict | None] = SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def put(self, message: EventDict) -> None:
        """Queue the message, or drop it if MOST_WAITING messages are queued."""
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put(message)
        else:
            self._writer.drop(1)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Write the queued messages, for at most FLUSH_SECONDS."""
        self._ended.set()
        self._queue.put(None)
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            # Collect more lines: waking up for each line would cost more than writing it.
            self._ended.wait(GATHERING_SECONDS)
            messages = [first]
            with suppress(Empty):
                while len(messages) < AT_ONCE and (message := self._queue.get_nowait()) is not None:
                    messages.append(message)
            self._writer.write(messages)
            if self._ended.is_set():
                self._queue.put(None)  # the end marker may be in this batch


def _chunks(lines: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """Join lines into chunks that one write to a pipe accepts whole. Yield each chunk and its number of lines."""
    chunk, count = b"", 0
    for line in lines:
        if count and len(chunk) + len(line) > LONGEST:
            yield chunk, count
            chunk, count = b"", 0
        chunk, count = chunk + line, count + 1
    if count:
        yield chunk, count
