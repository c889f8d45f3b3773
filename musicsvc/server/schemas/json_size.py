"""Limit the number of values in a JSON text before it is parsed.

A body of 1 MiB can hold half a million values. Parsing them would keep the interpreter, and with it the event loop,
busy for hundreds of milliseconds, on any thread.
"""

import re

MAX_VALUES = 20_000
SAMPLE = 5_000  # values of an oversized text that are still validated; more than any field accepts
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]', re.DOTALL)
CLOSING = {"[": "]", "{": "}"}


def has_too_many_values(raw: bytes | bytearray) -> bool:
    """Return whether the JSON text has more than MAX_VALUES values. Each object, array, item and member is counted."""
    if len(raw) <= MAX_VALUES or _separators(raw) <= MAX_VALUES:
        return False
    # Some separators may be inside strings, so count only those outside.
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * MAX_VALUES:  # a value has at most two strings, its key and itself
        return True
    outside = b"".join(unescaped.split(b'"')[::2])
    return _separators(outside) > MAX_VALUES


def first_values(text: str) -> str:
    """Return the JSON text cut after its first SAMPLE values, with all open objects and arrays closed."""
    closing: list[str] = []
    values = 0
    for token in TOKEN.finditer(text):
        match token[0]:
            case "[" | "{" as bracket:
                closing.append(CLOSING[bracket])
                values += 1
                if len(closing) > SAMPLE:
                    return text[: token.end()]  # nested too deeply to be parsed
            case "]" | "}":
                del closing[-1:]
            case "," if values >= SAMPLE:
                return text[: token.start()] + "".join(reversed(closing))
            case ",":
                values += 1
    return text


def _separators(raw: bytes | bytearray) -> int:
    return sum(raw.count(sign) for sign in (b",", b"[", b"{"))
