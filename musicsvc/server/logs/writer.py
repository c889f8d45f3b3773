"""Lines on their way to stderr, which may be full, closed, or read by nobody: what cannot be written is counted."""

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
    from musicsvc.server.logs.formatting import Lines

MOST_WAITING = 4096  # lines
AT_ONCE = 512
GATHERING_SECONDS = 0.02
FLUSH_SECONDS = 2.0


class LogWriter:
    """Writes to a descriptor; by itself at once, where that does not block."""

    def __init__(self, descriptor: int, lines: Lines, clock: Clock) -> None:
        self._descriptor = descriptor
        self._lines = lines
        self._clock = clock
        self._counting = threading.Lock()
        self._torn = False
        self._untold = 0
        self.dropped = 0

    def put(self, message: EventDict) -> None:
        """Write the message now, or lose it where nobody reads."""
        if self._takes(0):
            self.write([message])
        else:
            self.drop(1)

    def write(self, messages: list[EventDict]) -> None:
        """Write the messages, blocking; once it works again, tell how many were lost."""
        for chunk, count in _chunks(filter(None, map(self._of, messages))):
            if not self._pass_on(chunk):
                self.drop(count)
            elif self._untold:
                self._tell()

    def drop(self, count: int) -> None:
        """Count what was not written."""
        with self._counting:
            self.dropped += count
            self._untold += count

    def _of(self, message: EventDict) -> bytes:
        try:
            return self._lines.render(message)
        except Exception:  # noqa: BLE001 - a value that cannot be told is no reason to tell nothing more
            self.drop(1)
            return b""

    def _tell(self) -> None:
        with self._counting:
            count, self._untold = self._untold, 0
        about: EventDict = {
            "time": self._clock.now(),
            "level": "warning",
            "message": f"{count} log lines were lost: stderr did not take them",
            "logger": "musicsvc",
            "lost": count,
        }
        if not self._pass_on(self._lines.render(about)):
            with self._counting:
                self._untold += count

    def _pass_on(self, chunk: bytes) -> bool:
        """Whether all of it went out. What follows a line that was broken off begins a new one."""
        left = b"\n" + chunk if self._torn else chunk
        try:
            while left:
                try:
                    left = left[os.write(self._descriptor, left) :]
                    self._torn = bool(left)
                except BlockingIOError:
                    self._takes(None)
        except OSError:
            return False
        return True

    def _takes(self, milliseconds: int | None) -> bool:
        """Whether a line can be written without blocking, waiting so long for it."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(milliseconds))


class QueuedLogWriter:
    """Hands messages to an writer on a thread of its own, so that no disk and no reader holds anybody up."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._queue: SimpleQueue[EventDict | None] = SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def put(self, message: EventDict) -> None:
        """Let the message be written, or lose it where too many wait."""
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put(message)
        else:
            self._writer.drop(1)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Write what waits, as far as somebody takes it."""
        self._ended.set()
        self._queue.put(None)
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            # A thread that woke up for each line would cost more than the line.
            self._ended.wait(GATHERING_SECONDS)
            messages = [first]
            with suppress(Empty):
                while len(messages) < AT_ONCE and (message := self._queue.get_nowait()) is not None:
                    messages.append(message)
            self._writer.write(messages)
            if self._ended.is_set():
                self._queue.put(None)  # which may just have been taken out


def _chunks(lines: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """Lines together, as many as are written at once or not at all, and how many they are."""
    chunk, count = b"", 0
    for line in lines:
        if count and len(chunk) + len(line) > LONGEST:
            yield chunk, count
            chunk, count = b"", 0
        chunk, count = chunk + line, count + 1
    if count:
        yield chunk, count
