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
# A sign outside of strings, with all strings before it, or the end of the text. A string without an end reaches there.
# It always matches, and nothing is tried twice, so that all matches together look at each character once.
SIGN = re.compile(r'[^"\[\]{},]*+(?:"[^"\\]*+(?:\\.?[^"\\]*+)*+"?[^"\[\]{},]*+)*+([\[\]{},]?)', re.DOTALL)
CLOSING = {"[": "]", "{": "}"}


def first_values(text: str, most: int = MAX_VALUES, sample: int = SAMPLE) -> str | None:
    """Return None if the JSON text has at most `most` values, else a text with its first `sample` values.

    Each object, array, item and member is counted. All open objects and arrays are closed. If the text is not JSON,
    None may be returned too: the parser refuses it, after at most that many values.
    """
    closing: list[str] = []
    values, cut = 0, None
    for found in SIGN.finditer(text):
        match found[1]:
            case "[" | "{" as bracket:
                closing.append(CLOSING[bracket])
                values += 1
                if cut is None and len(closing) > sample:
                    cut = text[: found.end()]  # nested too deeply to be parsed
            case "]" | "}" if closing:
                closing.pop()
            case ",":
                if cut is None and values >= sample:
                    cut = text[: found.start(1)] + "".join(reversed(closing))
                values += 1
            case _:
                break  # at the end, or at a bracket that closes nothing
        if values > most:
            return text[: found.end()] if cut is None else cut
    return None


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
    # A text of so few bytes, or with so few signs, is not looked at further.
    may_be_oversized = len(raw) > MAX_VALUES and sum(map(raw.count, (b",", b"[", b"{"))) > MAX_VALUES
    if may_be_oversized and (first := first_values(text)) is not None:
        return ParsedBody(None, None, _errors_of_oversized(schema, first, context), None)
    sent = parse_json(text) if raw else _empty(schema)
    model, errors = check(schema, sent, context)
    return ParsedBody(sent, model, errors, schema.get_resource(sent, errors))


def _empty(schema: type[Body]) -> dict[str, Any]:
    if any(field.is_required() for field in schema.model_fields.values()):
        raise Malformed("A JSON body is required.")
    return {}


def _errors_of_oversized(schema: type[Body], first: str, context: Mapping[str, Any]) -> Errors:
    """Map fields to errors for a body with too many values, of which only the first are checked, none for missing."""
    _, errors = check(schema, parse_json(first), context)
    present = {name: message for name, message in errors.items() if message != REQUIRED}
    return {"body": TOO_MANY_VALUES} | present
