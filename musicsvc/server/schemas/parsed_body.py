"""Parse and validate the bytes of a request body. Safe to run on any thread."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from musicsvc.errors import Malformed
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.reading import REQUIRED, Errors, check, decode, parse_json

MAX_VALUES = 20_000
TOO_MANY_VALUES = f"Must have at most {MAX_VALUES:,} values in total."
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


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """A parsed request body.

    `sent`: the JSON value, or None if the body has too many values. `model`: the validated body, or None if there are
    `errors`. `resource`: the objects that the body names, such as `conversations/7`, or None.
    """

    sent: Any
    model: Body | None
    errors: Errors
    resource: str | None


def parse_body(schema: type[Body], raw: bytes | bytearray, context: Mapping[str, Any]) -> ParsedBody:
    """Parse the body and validate it with the schema. Raises Malformed if it is not valid JSON."""
    text = decode(raw)
    if has_too_many_values(raw):
        return ParsedBody(None, None, _errors_of_oversized(schema, text, context), None)
    sent = parse_json(text) if raw else _empty(schema)
    model, errors = check(schema, sent, context)
    return ParsedBody(sent, model, errors, schema.get_resource(sent, errors))


def _empty(schema: type[Body]) -> dict[str, Any]:
    if any(field.is_required() for field in schema.model_fields.values()):
        raise Malformed("A JSON body is required.")
    return {}


def _errors_of_oversized(schema: type[Body], text: str, context: Mapping[str, Any]) -> Errors:
    """Map fields to errors for a body with too many values. Check only its first values; ignore missing fields."""
    _, errors = check(schema, parse_json(first_values(text)), context)
    present = {name: message for name, message in errors.items() if message != REQUIRED}
    return {"body": TOO_MANY_VALUES} | present
