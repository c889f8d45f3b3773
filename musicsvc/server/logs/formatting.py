"""From a message to its line: one JSON object, or text for people; neither can break a line or steer a terminal."""

from __future__ import annotations

import json
import math
import re
from traceback import TracebackException
from typing import TYPE_CHECKING, Any

from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer

from musicsvc.clock import isoformat

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict

LONGEST = 4096  # bytes; so much is written into a pipe at once or not at all, whoever else writes there
LIMITS = ((2000, 3000), (1000, 2000), (300, 900), (80, 200), (20, 20))  # characters of a value, and of a trace
ALWAYS = ("time", "level", "message", "logger")
SECRETS = re.compile(r"(msvc_)[0-9a-z]+|(bearer\s+)\S+", re.IGNORECASE)
CUT = "…"


class Lines:
    """Renders messages: fields in their order, `time` an instant, `exception` what is kept of one."""

    def __init__(self, *, people: bool) -> None:
        """`people` read it, not machines."""
        self._spelled = _visible if people else _whole
        self._trace = _indented if people else _whole
        self._render: Callable[[Any, str, EventDict], Any] = _text() if people else _json()

    def render(self, message: EventDict) -> bytes:
        """The message's line, with its end; what is long is cut until it fits."""
        for value, trace in LIMITS:
            line = self._rendered(message, value, trace)
            if len(line) <= LONGEST:
                return line
        return self._rendered({key: message[key] for key in ALWAYS}, *LIMITS[-1])

    def _rendered(self, message: EventDict, value: int, trace: int) -> bytes:
        event = {key: self._plain(found, value) for key, found in message.items()}
        event["time"] = isoformat(message["time"])
        if "exception" in message:
            event["exception"] = self._trace(_middle_cut(_without_secrets(_told(message["exception"])), trace))
        line = str(self._render(None, message["level"], event))
        return line.replace("\x7f", "\\u007f").encode() + b"\n"

    def _plain(self, found: Any, longest: int) -> Any:
        """A value that JSON has, no longer than it may be, without secrets."""
        if found is None or isinstance(found, bool | int):
            return found
        if isinstance(found, float) and math.isfinite(found):
            return found
        text = found if isinstance(found, str) else str(found)
        return self._spelled(_without_secrets(text if len(text) <= longest else f"{text[:longest]}{CUT}"))


def _json() -> JSONRenderer:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    return JSONRenderer(serializer=lambda event, **_: encode(event))


def _text() -> ConsoleRenderer:
    return ConsoleRenderer(
        colors=False,
        pad_event_to=0,
        sort_keys=False,
        event_key="message",
        timestamp_key="time",
        exception_formatter=plain_traceback,
    )


def _told(failure: Any) -> str:
    """A trace as Python tells it, in which the lines of source are read only now."""
    return "".join(failure.format()).rstrip("\n") if isinstance(failure, TracebackException) else str(failure)


def _without_secrets(text: str) -> str:
    lowered = text.lower()
    return SECRETS.sub(r"\1\2***", text) if "msvc_" in lowered or "bearer" in lowered else text


def _middle_cut(trace: str, longest: int) -> str:
    """The trace with both its ends."""
    return trace if len(trace) <= longest else f"{trace[: longest // 3]}{CUT}{trace[-2 * longest // 3 :]}"


def _whole(text: str) -> str:
    """The text as it is, but for what no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _visible(text: str) -> str:
    """The text with all that is not printed spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _indented(trace: str) -> str:
    """A trace for people, each of its lines made safe by itself."""
    return "\n".join(f"    {_visible(line)}" for line in trace.split("\n"))
