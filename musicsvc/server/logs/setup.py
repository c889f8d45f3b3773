"""Server logging: log records are written to stderr as lines, without blocking a request."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from musicsvc.clock import Clock
from musicsvc.config import Log
from musicsvc.server import request_id
from musicsvc.server.logs.formatting import LONGEST, Formatter, Message
from musicsvc.server.logs.writer import DirectHandler, LineWriter, Listener, QueuedHandler

if TYPE_CHECKING:
    from musicsvc.server.call import Call

FRAMES = -25  # log only the 25 innermost frames of a traceback
REQUESTS = "musicsvc.requests"
LONGEST_METHOD = 16
OWN_LOGGERS = re.compile(r"musicsvc(?!\.wire$)(\.|$)")  # aiohttp logs to musicsvc.wire
STANDARD = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
SCALARS = (str, int, float, type(None))


@contextmanager
def started(settings: Log, clock: Clock, *, threaded: bool) -> Iterator[LineWriter]:
    """Log to stderr in the `with` block. `threaded`: write on a separate thread; must be false before a fork."""
    with suppress(OSError):
        sys.stderr.flush()
    descriptor = sys.stderr.fileno()
    writer = LineWriter(descriptor, _formatter(descriptor, settings), clock)
    handler = (QueuedHandler if threaded else DirectHandler)(writer, partial(message_of, clock))
    with ExitStack() as undo:
        if isinstance(handler, QueuedHandler):
            listener = Listener(handler, writer)
            listener.start()
            undo.callback(listener.stop)
        undo.enter_context(_handling(handler, settings))
        undo.enter_context(_exception_hooks())
        yield writer


def log_request(call: Call) -> None:
    """Log a call, if `log.requests` is on, with the data of the activity log: no query string, token value or body."""
    logging.getLogger(REQUESTS).info(
        "request",
        extra={
            "at": call.at,
            "request_id": call.request_id,
            "account": call.account_id,
            "token": call.token_id,
            "address": call.address,
            "method": call.method[:LONGEST_METHOD],
            "route": call.route.path if call.route is not None else None,
            "status": call.status,
            "milliseconds": round(call.milliseconds, 3),
            "bytes": call.size,
        },
    )


def change(writer: LineWriter, settings: Log) -> None:
    """Apply new settings to the running log."""
    writer.formatter = _formatter(writer.descriptor, settings)
    for logger, level in _levels(settings).items():
        logger.setLevel(level)


def _formatter(descriptor: int, settings: Log) -> Formatter:
    return Formatter(text=settings.format == "text" or (settings.format == "auto" and os.isatty(descriptor)))


def _levels(settings: Log) -> dict[logging.Logger, int]:
    """Return the log levels to set, by logger. Records of libraries below WARNING are ignored."""
    wanted = logging.getLevelNamesMapping()[settings.level.upper()]
    return {
        logging.getLogger(): max(wanted, logging.WARNING),
        logging.getLogger("musicsvc"): wanted,
        # The setting applies at any level.
        logging.getLogger(REQUESTS): logging.INFO if settings.requests else logging.NOTSET,
    }


def message_of(clock: Clock, record: logging.LogRecord) -> Message:
    """Convert a log record to a dict of plain values, which another thread can write later."""
    own = OWN_LOGGERS.match(record.name) is not None
    more = {key: found for key, found in record.__dict__.items() if key not in STANDARD}
    message: Message = {
        "time": more.pop("at", None) or clock.now(),
        "level": record.levelname.lower(),
        "message": _text(record, own=own),
        "logger": record.name,
    }
    if named := more.pop("request_id", None) or request_id.current.get():
        message["request_id"] = named
    if own:
        message.update({key: each if isinstance(each, SCALARS) else _as_text(each) for key, each in more.items()})
    if record.exc_info and record.exc_info[1] is not None:
        message["exception"] = _exception(*record.exc_info, own=own)
    return message


def _text(record: logging.LogRecord, *, own: bool) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - a format that does not match its values, or a value whose str() fails
        text = str(record.msg)
    # Further lines of a library's message may hold client data.
    return text[:LONGEST] if own else text[:LONGEST].partition("\n")[0]


def _as_text(found: object) -> str:
    try:
        return str(found)
    except Exception:  # noqa: BLE001 - str() of any object may fail
        return f"a {type(found).__name__} without a text"


def _exception(
    kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None, *, own: bool
) -> traceback.TracebackException | str:
    """Return the traceback.

    `own`: this package logged the exception. Otherwise its message is omitted, because it may have client data.
    """
    if not own or kind is None or fault is None:
        frames = traceback.StackSummary.extract(traceback.walk_tb(trace), limit=FRAMES, lookup_lines=False)
        places = (f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
        return "\n".join([*places, kind.__qualname__ if kind else ""])
    return traceback.TracebackException(kind, fault, trace, limit=FRAMES, lookup_lines=False, compact=True)


@contextmanager
def _handling(handler: logging.Handler, settings: Log) -> Iterator[None]:
    """Send log records to `handler` in the `with` block."""
    root = logging.getLogger()
    levels = _levels(settings)
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
def _exception_hooks() -> Iterator[None]:
    """Log unhandled exceptions of threads and finalizers, which Python would print to stderr."""
    log = logging.getLogger("musicsvc")

    def end_of_thread(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_type is not SystemExit:
            log.error("unhandled exception in a thread", exc_info=fault.exc_value)

    def unraisable(fault: sys.UnraisableHookArgs) -> None:
        log.error("unhandled exception in a callback or finalizer", exc_info=fault.exc_value)

    before = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = end_of_thread, unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before
