"""Format text for users: numbers with nouns, escaped control characters, and validation errors in plain words."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

LONGEST_NAME = 255  # characters of a name, a code or an address
SHOWN = 80  # characters of a text of unknown length, such as a heading
# Spreadsheets may also run a line within a cell as a formula. The second sign of each pair is the full-width form.
_SIGNS = r"[=\uff1d+\uff0b\-\uff0d@\uff20\t\r]"
_LINE = r"(?m)(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))"
_QUOTED = re.compile(f"{_LINE}(?='*{_SIGNS})")
_UNQUOTED = re.compile(f"{_LINE}'(?='*{_SIGNS})")
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # without tab and line breaks
NO_CONTROLS = "Must not contain control characters other than tabs and line breaks."
NEEDS_VISIBLE = "Must contain a visible character."
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f]")  # in URLs
PLAIN = re.compile(r"[!-~]")  # most names have one of these
# Categories of characters that show nothing, or nothing without another one, and others that fonts leave blank.
_UNSEEN = {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn", "Me"}
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
_ISOLATES = dict.fromkeys(range(0x2066, 0x206A))
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "path": "a path",
    "tuple": "a list",
    "model": "a table",
    "byte": "a size such as 256MiB",
    "literal": "{expected}",
    "greater_than": "more than {gt:,.15g}",
    "greater_than_equal": "{ge:,.15g} or more",
    "less_than_equal": "{le:,.15g} or less",
}


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """Format a number with its noun: `1 track`, `2,000 tracks`. By default, the plural is the singular plus `s`."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def every(number: int, singular: str) -> str:
    """Format an interval: `every hour`, `every 24 hours`."""
    return f"every {singular if number == 1 else quantity(number, singular)}"


def plural(number: int, nouns: str) -> str:
    """Format a number with a regular noun, given in the plural: `1 entry`, `2 entries`."""
    return quantity(number, f"{nouns[:-3]}y" if nouns.endswith("ies") else nouns[:-1], nouns)


def escape_controls(text: str) -> str:
    """Return the text with control characters escaped, so that printing it cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def is_visible(text: str) -> bool:
    """Return whether a name has a character that can be seen."""
    if PLAIN.search(text):
        return True
    return any(unicodedata.category(char) not in _UNSEEN and char not in _BLANK for char in text)


def is_url(text: str) -> bool:
    """Return True if the text is an absolute http or https URL."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not _UNSAFE.search(text)


def name_problem(name: str) -> str | None:
    """Return what is wrong with the characters of a name, or None."""
    return NO_CONTROLS if CONTROLS.search(name) else None if is_visible(name) else NEEDS_VISIBLE


def explain_validation(error: Mapping[str, Any]) -> str:
    """Describe a pydantic error by its rule and the invalid value: `must be 64 or less, not 65`."""
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context["error"]).removesuffix(".")
    kind = error["type"]
    expected = (_TYPES.get(kind) or _TYPES.get(kind.partition("_")[0]) or "valid").format(**context)
    given = f", not {error['input']!r}" if isinstance(error["input"], str | int | float) else ""
    return f"must be {expected}{given}"


def some_of(parts: Sequence[str], most: int) -> str:
    """Return the first `most` parts in a list, and the number of others."""
    more = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {more:,} more" if more > 0 else "")


def cut(text: str) -> str:
    """Return the text, or its first SHOWN characters and an ellipsis if it is longer."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def isolated(name: str) -> str:
    """Return a name for a sentence whose order it leaves alone, whatever its script or its signs of direction."""
    return f"\u2068{name.translate(_ISOLATES)}\u2069"


def quoted(text: str) -> str:
    """Return the text with a `'` before each line that a spreadsheet would take for a formula.

    A line with such a `'` already gets another one, so that `unquoted` can take it back.
    """
    return _QUOTED.sub("'", text)


def unquoted(text: str) -> str:
    """Take back what `quoted` did."""
    return _UNQUOTED.sub("", text)
