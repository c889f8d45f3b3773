"""Logging of a process: levels, the current request, and exceptions that nobody handles."""

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Log
from musicsvc.server import request_id
from musicsvc.server.logs import setup as log_setup


def fail(text: str) -> NoReturn:
    raise ValueError(text)


class Lost:
    """An object with a failing finalizer."""

    def __del__(self) -> None:
        fail("no finalizer")


@contextmanager
def logging_to(lines: list[dict[str, Any]], settings: Log, clock: MovableClock) -> Iterator[None]:
    """Log as a server does; the file has the lines afterwards."""
    reading, writing = os.pipe()
    before = sys.stderr
    sys.stderr = os.fdopen(writing, "w")
    try:
        with log_setup.started(settings, clock, threaded=True):
            yield
    finally:
        sys.stderr.close()
        sys.stderr = before
        with os.fdopen(reading) as pipe:
            lines += map(json.loads, pipe)


def test_levels_apply_and_everything_is_restored_at_the_end(clock: MovableClock) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger("musicsvc").level, threading.excepthook
    for level, expected in (("debug", "abcde"), ("info", "bcde"), ("warning", "cde"), ("error", "de")):
        lines: list[dict[str, Any]] = []
        with logging_to(lines, Log(level=level, requests=True), clock):
            ours, other = logging.getLogger("musicsvc.part"), logging.getLogger("peewee")
            for log, words in ((ours, "abcd"), (other, "ABCD")):
                for message, say in zip(words, (log.debug, log.info, log.warning, log.error), strict=True):
                    say(message)
            logging.getLogger("musicsvc.requests").info("e")
        found = "".join(each["message"] for each in lines)
        assert found == expected.replace("e", "") + ("D" if level == "error" else "CD") + "e"
    assert before == (logging.getLogger().handlers[:], logging.getLogger("musicsvc").level, threading.excepthook)


def test_lines_name_the_current_request(clock: MovableClock) -> None:
    lines: list[dict[str, Any]] = []
    with logging_to(lines, Log(), clock):
        request_id.current.set("abc")
        logging.getLogger("musicsvc").warning("on the way")
        request_id.current.set(None)
        logging.getLogger("musicsvc").warning("afterwards")
    first, second = lines
    assert first["request_id"] == "abc"
    assert "request_id" not in second


def test_unhandled_exceptions_are_logged(clock: MovableClock) -> None:
    lines: list[dict[str, Any]] = []
    with logging_to(lines, Log(), clock):
        thread = threading.Thread(target=fail, args=("no reason",))
        thread.start()
        thread.join()
        lost = Lost()
        del lost
    of_thread, of_finalizer = lines
    assert of_thread["message"] == "unhandled exception in a thread"
    assert of_thread["exception"].endswith("ValueError: no reason")
    assert of_finalizer["message"] == "unhandled exception in a callback or finalizer"
    assert (of_thread["level"], of_finalizer["level"]) == ("error", "error")
    assert of_finalizer["exception"].endswith("ValueError: no finalizer")


@pytest.mark.parametrize("threaded", [True, False])
def test_a_server_logs_on_a_thread_and_a_supervisor_without(clock: MovableClock, *, threaded: bool) -> None:
    before = threading.active_count()
    with open(os.devnull, "w") as sink, pytest.MonkeyPatch.context() as patch:  # noqa: PTH123 - a device
        patch.setattr(sys, "stderr", sink)
        with log_setup.started(Log(), clock, threaded=threaded):
            assert threading.active_count() - before == int(threaded)
    assert threading.active_count() == before
