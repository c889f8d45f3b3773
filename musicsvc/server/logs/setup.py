"""The server's messages: the standard library's logging in, lines on stderr out, none of which holds a request up."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import traceback
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from musicsvc.server.call import request_id
from musicsvc.server.logs.formatting import LONGEST, Lines
from musicsvc.server.logs.writer import LogWriter, QueuedLogWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from structlog.typing import EventDict

    from musicsvc.clock import Clock
    from musicsvc.config import Log

FRAMES = -25  # of a trace: those nearest to the fault
REQUESTS = "musicsvc.requests"
OURS = re.compile(r"musicsvc(?!\.wire$)(\.|$)")  # what aiohttp says bears the name of the wire
STANDARD = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
PLAIN = (str, int, float, type(None))


class Sink(Protocol):
    """Where messages go."""

    def put(self, message: EventDict) -> None:
        """Take the message; never fails."""


@contextmanager
def started(settings: Log, clock: Clock, *, threaded: bool) -> Iterator[LogWriter]:
    """Log to stderr as the settings say, in this process; before a fork without a thread."""
    with suppress(OSError):
        sys.stderr.flush()
    descriptor = sys.stderr.fileno()
    people = settings.format == "text" or (settings.format == "auto" and os.isatty(descriptor))
    writer = LogWriter(descriptor, Lines(people=people), clock)
    with ExitStack() as undo:
        sink = undo.enter_context(QueuedLogWriter(writer)) if threaded else writer
        undo.enter_context(_handled(Handler(sink, clock), settings))
        undo.enter_context(_hooked())
        yield writer


class Handler(logging.Handler):
    """Makes of each record a message that holds no object of anybody's, so that it can be written later."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        super().__init__()
        self._sink = sink
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the record on."""
        ours = OURS.match(record.name) is not None
        more = {key: found for key, found in record.__dict__.items() if key not in STANDARD}
        message: EventDict = {
            "time": more.pop("at", None) or self._clock.now(),
            "level": record.levelname.lower(),
            "message": _said(record, ours=ours),
            "logger": record.name,
        }
        if named := more.pop("request_id", None) or request_id.get():
            message["request_id"] = named
        if ours:
            message.update({key: found if isinstance(found, PLAIN) else _text(found) for key, found in more.items()})
        if record.exc_info and record.exc_info[1] is not None:
            message["exception"] = _kept(*record.exc_info, ours=ours)
        self._sink.put(message)


def _said(record: logging.LogRecord, *, ours: bool) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - a message that does not fit its values, or a value that cannot be told
        text = str(record.msg)
    return text[:LONGEST] if ours else text[:LONGEST].partition("\n")[0]  # libraries go on with what they hold


def _text(found: object) -> str:
    try:
        return str(found)
    except Exception:  # noqa: BLE001 - see above
        return f"a {type(found).__name__} that cannot be told"


def _kept(
    kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None, *, ours: bool
) -> traceback.TracebackException | str:
    """Where it failed and why; of a library's fault the kind alone, for its text may hold what a client sent."""
    if not ours or kind is None or fault is None:
        frames = traceback.StackSummary.extract(traceback.walk_tb(trace), limit=FRAMES, lookup_lines=False)
        places = (f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
        return "\n".join([*places, kind.__qualname__ if kind else ""])
    return traceback.TracebackException(kind, fault, trace, limit=FRAMES, lookup_lines=False, compact=True)


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
