"""From a record to its line: one JSON object, or text for people; neither can break a line or steer a terminal."""

from __future__ import annotations

import json
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer
from structlog.stdlib import ExtraAdder, ProcessorFormatter

from musicsvc.clock import isoformat

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator
    from traceback import TracebackException

    from structlog.typing import EventDict, Processor

    Spelling = Callable[[str], str]

LONGEST = 4096  # bytes; so much is written into a pipe at once or not at all, whoever else writes there
LIMITS = ((2000, 3000), (1000, 2000), (300, 900), (80, 200), (20, 20))  # characters of a value, and of a trace
FALLBACK = ("time", "level", "message", "logger")
SECRETS = re.compile(r"(msvc_)[0-9A-Za-z]+|(bearer\s+)\S+", re.IGNORECASE)
OURS = re.compile(r"musicsvc(?!\.wire$)(\.|$)")  # what aiohttp says bears the name of the wire
CUT = "…"


class Lines:
    """Renders records."""

    def __init__(self, *, people: bool) -> None:
        """`people` read it, not machines."""
        self._formatters = [_formatter(*limits, people=people) for limits in LIMITS]
        self._fallback = _formatter(*LIMITS[-1], people=people, keys=FALLBACK)

    def of(self, record: logging.LogRecord) -> bytes:
        """The record's line, with its end; what is long is cut until it fits."""
        for formatter in self._formatters:
            line = _encoded(formatter.format(record))
            if len(line) <= LONGEST:
                return line
        return _encoded(self._fallback.format(record))


def _formatter(value: int, trace: int, *, people: bool, keys: tuple[str, ...] | None = None) -> ProcessorFormatter:
    text = _visible if people else _whole
    chain: list[Processor] = [_event, partial(_plain, value, trace, text)]
    if keys is not None:
        chain.append(lambda _, __, event: {key: event[key] for key in keys})
    return ProcessorFormatter(processors=[*chain, _text() if people else _json()], foreign_pre_chain=[ExtraAdder()])


def _json() -> JSONRenderer:
    return JSONRenderer(serializer=lambda event, **_: json.dumps(event, separators=(",", ":")))


def _text() -> ConsoleRenderer:
    return ConsoleRenderer(
        colors=False,
        pad_event_to=0,
        sort_keys=False,
        event_key="message",
        timestamp_key="time",
        exception_formatter=plain_traceback,
    )


def _encoded(line: str) -> bytes:
    return line.replace("\x7f", "\\u007f").encode() + b"\n"


def _event(_logger: object, _name: str, given: EventDict) -> EventDict:
    """The fields of a line, in their order."""
    record = given.pop("_record")
    given.pop("_from_structlog")
    message, ours = str(given.pop("event")), OURS.match(record.name) is not None
    failure = given.pop("failure", None)
    event: dict[str, Any] = {
        "time": isoformat(given.pop("at")),
        "level": record.levelname.lower(),
        "message": message if ours else message.partition("\n")[0],  # libraries go on with what they hold
        "logger": record.name,
    }
    if named := given.pop("request_id", None):
        event["request_id"] = named
    if ours:
        event |= given
    event.pop("exception", None)
    if failure is not None:
        event["exception"] = _trace(failure, told=ours)
    return event


def _trace(failure: TracebackException, *, told: bool) -> str:
    """Where it failed and why; of a library's fault the kind alone, for its text may hold what a client sent."""
    if told:
        return "".join(failure.format()).rstrip("\n")
    return "".join([*failure.stack.format(), failure.exc_type.__qualname__ if failure.exc_type else ""])


def _plain(value: int, trace: int, text: Spelling, _logger: object, _name: str, event: EventDict) -> EventDict:
    """Values that JSON has, no longer than they may be, without secrets."""
    return {
        key: _indented(found, trace, text) if key == "exception" else _value(found, value, text)
        for key, found in event.items()
    }


def _value(found: Any, longest: int, text: Spelling) -> Any:
    if found is None or isinstance(found, bool | int):
        return found
    if isinstance(found, float):
        return found if math.isfinite(found) else str(found)
    return text(_cut(SECRETS.sub(r"\1\2***", str(found)), longest))


def _indented(trace: str, longest: int, text: Spelling) -> str:
    """A trace, of which the middle goes first; for people each of its lines is made safe by itself."""
    trace = SECRETS.sub(r"\1\2***", trace)
    if len(trace) > longest:
        trace = f"{trace[: longest // 3]}{CUT}{trace[-2 * longest // 3 :]}"
    if text is _whole:
        return _whole(trace)
    return "\n".join(f"    {_visible(line)}" for line in trace.split("\n"))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}{CUT}"


def _whole(text: str) -> str:
    """The text as it is, but for what no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _visible(text: str) -> str:
    """The text with all that is not printed spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(text))


def _spelled(text: str) -> Iterator[str]:
    for sign in text:
        yield sign if sign.isprintable() else sign.encode("unicode_escape").decode()
