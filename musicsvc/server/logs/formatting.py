"""Log lines as JSON objects or as text, with line breaks and control characters escaped."""

import json
import math
from traceback import TracebackException
from typing import Any

from musicsvc.clock import isoformat
from musicsvc.redaction import redact
from musicsvc.wording import escape_controls

Message = dict[str, Any]
LONGEST = 4096  # bytes that a write to a pipe never splits (PIPE_BUF)
LIMITS = ((2000, 3000), (1000, 2000), (300, 900), (80, 200), (20, 20))  # characters of a value and of a traceback
REQUIRED = ("time", "level", "message", "logger")
CUT = "…"
QUOTED = frozenset(" \t=\r\n\"'")  # a value with one of these is quoted in text


class Formatter:
    """Formats log messages, which are dicts, as lines. The key `time` is in microseconds since 1970."""

    def __init__(self, *, text: bool) -> None:
        """`text`: write plain text for people instead of JSON."""
        self._escape = escape_controls if text else _encodable
        self._escape_traceback = _indented if text else _encodable
        self._render = _text if text else json.JSONEncoder(separators=(",", ":")).encode

    def render(self, message: Message) -> bytes:
        """Return a message as a line of at most LONGEST bytes; long values are cut."""
        for value, traceback in LIMITS:
            line = self._encode(message, value, traceback)
            if len(line) <= LONGEST:
                return line
        return self._encode({key: message[key] for key in REQUIRED}, *LIMITS[-1])

    def _encode(self, message: Message, value: int, traceback: int) -> bytes:
        event = {key: self._scalar(found, value) for key, found in message.items()}
        event["time"] = isoformat(message["time"])
        if "exception" in message:
            text = redact(_traceback_text(message["exception"]))
            event["exception"] = self._escape_traceback(_cut_middle(text, traceback))
        return self._render(event).replace("\x7f", "\\u007f").encode() + b"\n"

    def _scalar(self, found: Any, longest: int) -> Any:
        """Return None, booleans and numbers unchanged; other values as text, cut to `longest`, without secrets."""
        if found is None or isinstance(found, bool | int):
            return found
        if isinstance(found, float) and math.isfinite(found):
            return found
        text = found if isinstance(found, str) else str(found)
        return self._escape(redact(text if len(text) <= longest else f"{text[:longest]}{CUT}"))


def _text(event: Message) -> str:
    head = [event["time"], f"[{event['level']:<9}]", event["message"], f"[{event['logger']}]"]
    more = [f"{key}={_quoted(found)}" for key, found in event.items() if key not in {*REQUIRED, "exception"}]
    line = " ".join(part for part in head + more if part).rstrip(" ")
    return f"{line}\n{event['exception']}" if "exception" in event else line


def _quoted(found: object) -> str:
    return found if isinstance(found, str) and not QUOTED & set(found) else repr(found)


def _traceback_text(failure: Any) -> str:
    """Return the traceback as Python prints it. This reads source files, so it runs on the log thread."""
    return "".join(failure.format()).rstrip("\n") if isinstance(failure, TracebackException) else str(failure)


def _cut_middle(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 3]}{CUT}{text[-2 * longest // 3 :]}"


def _encodable(text: str) -> str:
    """Return the text with lone surrogates escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _indented(trace: str) -> str:
    """Return the traceback indented, with unprintable characters in its lines escaped."""
    return "\n".join(f"    {escape_controls(line)}" for line in trace.split("\n"))
