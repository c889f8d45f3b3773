"""Text for people: counts with their nouns, escaped control characters, and validation errors in plain words."""

from collections.abc import Mapping
from typing import Any

_RULES = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "model_type": "must be a table",
    "byte_size": "must be a size such as 256MiB",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
}


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """Return the number with its noun: `1 track`, `2,000 tracks`. The plural ends in `s` unless given."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def escape_controls(text: str) -> str:
    """Return the text with control characters escaped, so that no stored name can control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def explain_validation(error: Mapping[str, Any]) -> str:
    """Return one error of pydantic as a phrase that names the rule and the value: `must be 64 or less, not 65`."""
    context = error.get("ctx", {})
    if error["type"] in {"value_error", "assertion_error"}:
        return str(context["error"]).removesuffix(".")
    rule = _RULES.get(error["type"], "is not valid").format(**context)
    return f"{rule}, not {error['input']!r}" if isinstance(error["input"], str | int | float) else rule
