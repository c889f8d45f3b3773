"""The server's messages: the standard library's logging in, lines on stderr out, none of which holds a request up."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from musicsvc.server.calls import request_id
from musicsvc.server.log_lines import Lines
from musicsvc.server.log_writer import Outlet, Queued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.clock import Clock
    from musicsvc.config import Log

FRAMES = -25  # of a trace: those nearest to the fault
REQUESTS = "musicsvc.requests"


class Sink(Protocol):
    """Where records go."""

    def put(self, record: logging.LogRecord) -> None:
        """Take the record; neither fails nor changes it."""


@contextmanager
def started(settings: Log, clock: Clock, *, threaded: bool) -> Iterator[Outlet]:
    """Log to stderr as the settings say, in this process; before a fork without a thread."""
    sys.stderr.flush()
    descriptor = sys.stderr.fileno()
    people = settings.format == "text" or (settings.format == "auto" and os.isatty(descriptor))
    outlet = Outlet(descriptor, Lines(people=people), clock)
    with ExitStack() as undo:
        sink = undo.enter_context(Queued(outlet)) if threaded else outlet
        undo.enter_context(_handled(Handler(sink, clock), settings))
        undo.enter_context(_hooked())
        yield outlet


class Handler(logging.Handler):
    """Makes of each record one that holds nothing but text, so that it can be written later."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        super().__init__()
        self._sink = sink
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the record on."""
        still = logging.makeLogRecord(record.__dict__)
        try:
            still.msg = record.getMessage()
        except Exception:  # noqa: BLE001 - a message that does not fit its values, or a value that cannot be told
            still.msg = str(record.msg)
        still.args, still.exc_info, still.exc_text, still.stack_info = (), None, None, None
        still.__dict__.setdefault("at", self._clock.now())
        still.__dict__.setdefault("request_id", request_id.get())
        still.__dict__["failure"] = _told(record)
        self._sink.put(still)


def _told(record: logging.LogRecord) -> traceback.TracebackException | None:
    """What failed, without the objects that were at hand; its lines of source are read when it is written."""
    if not record.exc_info or record.exc_info[1] is None:
        return None
    return traceback.TracebackException(*record.exc_info, limit=FRAMES, lookup_lines=False, compact=True)


@contextmanager
def _handled(handler: logging.Handler, settings: Log) -> Iterator[None]:
    """Let the handler take all that is logged, from other libraries what is wrong; undone in the end."""
    wanted = logging.getLevelNamesMapping()[settings.level.upper()]
    root = logging.getLogger()
    levels = {root: max(wanted, logging.WARNING), logging.getLogger("musicsvc"): wanted}
    if settings.requests:
        levels[logging.getLogger(REQUESTS)] = logging.INFO  # asked for, whatever the level is
    before = root.handlers[:], {logger: logger.level for logger in levels}
    root.handlers[:] = [handler]
    for logger, level in levels.items():
        logger.setLevel(level)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:], levels = before
        for logger, level in levels.items():
            logger.setLevel(level)


@contextmanager
def _hooked() -> Iterator[None]:
    """What Python would print itself becomes a message too."""
    log = logging.getLogger("musicsvc")

    def end_of_thread(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_type is not SystemExit:
            log.error("a thread failed", exc_info=fault.exc_value)

    def unraisable(fault: sys.UnraisableHookArgs) -> None:
        log.error("something failed where nobody could be told", exc_info=fault.exc_value)

    before = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = end_of_thread, unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before
