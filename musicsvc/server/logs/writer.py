"""Writes log messages to stderr, which may be blocked or closed. Lines that cannot be written are counted."""

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue

from musicsvc.clock import Clock
from musicsvc.server.logs.formatting import Formatter, Message

MOST_WAITING = 4096  # lines
GATHERING_SECONDS = 0.02
FLUSH_SECONDS = 2.0


class LineWriter:
    def __init__(self, descriptor: int, formatter: Formatter, clock: Clock) -> None:
        self.descriptor = descriptor
        self.formatter = formatter
        self._clock = clock
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._counting = threading.Lock()
        self._in_line = False
        self._unreported = 0
        self.dropped = 0

    def write(self, message: Message, *, wait: bool = True) -> None:
        """Write the message, waiting while stderr is blocked; without `wait`, drop it then.

        Afterwards log how many messages were dropped earlier, if any.
        """
        try:
            line = self.formatter.render(message)
        except Exception:  # noqa: BLE001 - str() of any value may fail
            self.drop()
            return
        if not self._write_line(line, wait=wait):
            self.drop()
        elif self._unreported:
            self._report_dropped(wait=wait)

    def drop(self) -> None:
        with self._counting:
            self.dropped += 1
            self._unreported += 1

    def _report_dropped(self, *, wait: bool) -> None:
        with self._counting:
            count, self._unreported = self._unreported, 0
        message: Message = {
            "time": self._clock.now(),
            "level": "warning",
            "message": f"log lines lost: {count}; stderr was blocked or closed",
            "logger": "musicsvc",
            "lost": count,
        }
        if not self._write_line(self.formatter.render(message), wait=wait):
            with self._counting:
                self._unreported += count

    def _write_line(self, line: bytes, *, wait: bool) -> bool:
        """Write the line, after a line break if the last write ended within a line. Return False if writing fails."""
        left = b"\n" + line if self._in_line else line
        try:
            while left:
                if not self._poll.poll(None if wait else 0):
                    return False
                with suppress(BlockingIOError):
                    left = left[os.write(self.descriptor, left) :]
                    self._in_line = bool(left)
        except OSError:
            return False
        return True


class DirectHandler(logging.Handler):
    """Writes log records at once, and drops them if that would block. `message`: converts a record."""

    def __init__(self, writer: LineWriter, message: Callable[[logging.LogRecord], Message]) -> None:
        super().__init__()
        self._writer = writer
        self._message = message

    def emit(self, record: logging.LogRecord) -> None:
        self._writer.write(self._message(record), wait=False)


class QueuedHandler(QueueHandler):
    """Queues log records as messages, and drops them if MOST_WAITING messages are queued."""

    queue: Queue[Message | None]

    def __init__(self, writer: LineWriter, message: Callable[[logging.LogRecord], Message]) -> None:
        super().__init__(Queue(MOST_WAITING))
        self._writer = writer
        self._message = message

    def prepare(self, record: logging.LogRecord) -> Message:
        return self._message(record)

    def enqueue(self, message: Message) -> None:  # type: ignore[override]  # what `prepare` returns
        try:
            self.queue.put_nowait(message)
        except Full:
            self._writer.drop()


class Listener(QueueListener):
    """Writes queued messages on a thread, so that a slow disk or reader blocks no request. Use it in a `with` block."""

    queue: Queue[Message | None]

    def __init__(self, handler: QueuedHandler, writer: LineWriter) -> None:
        super().__init__(handler.queue)
        self._writer = writer

    def dequeue(self, block: bool) -> Message | None:  # type: ignore[override]  # noqa: FBT001 - the library's signature
        gathers = self.queue.empty()
        message = self.queue.get(block)
        if gathers and message is not None:
            time.sleep(GATHERING_SECONDS)  # waking up for each line would cost more than writing it
        return message

    def handle(self, message: Message) -> None:  # type: ignore[override]  # what `dequeue` returns
        self._writer.write(message)

    def stop(self) -> None:
        """Write the queued messages, for at most FLUSH_SECONDS."""
        with suppress(Full):
            self.queue.put(None, timeout=FLUSH_SECONDS)
        if self._thread is not None:
            self._thread.join(FLUSH_SECONDS)
            self._thread = None
