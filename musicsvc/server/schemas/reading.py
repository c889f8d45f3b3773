"""Parse and validate JSON bodies and query strings, and report all invalid fields at once."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from musicsvc.errors import Malformed
from musicsvc.server.schemas.fields import DIGITS_KEPT, MAX_ID, NO_NUL, Body, Input, Query

M = TypeVar("M", bound=Input)
Q = TypeVar("Q", bound=Query)
Errors = dict[str, str]
SURROGATE = re.compile(r"[\ud800-\udfff]")
REQUIRED = "This field is required."
EMPTY = "Must not be empty."
NOT_VALID = "Is not valid."
NOT_UTF8 = "Must be UTF-8, percent-encoded."
NUL = b"\\u0000"
NOT_JSON = "The body is not valid JSON in UTF-8."
MAX_NAME = 100  # characters of a key shown in an error
MAX_VALUES = 20_000
TOO_MANY_VALUES = f"Must have at most {MAX_VALUES:,} values in total."
SAMPLE = 5_000  # values of an oversized text that are still validated; more than any field accepts
# A sign outside of strings, with all strings before it, or the end of the text. A string without an end reaches there.
# It always matches, and nothing is tried twice, so that all matches together look at each character once.
SIGN = re.compile(r'[^"\[\]{},]*+(?:"[^"\\]*+(?:\\.?[^"\\]*+)*+"?[^"\[\]{},]*+)*+([\[\]{},]?)', re.DOTALL)
CLOSING = {"[": "]", "{": "}"}
MESSAGES = {
    "missing": REQUIRED,
    "string_type": "Must be a string.",
    "int_type": "Must be an integer.",
    "bool_type": "Must be true or false.",
    "list_type": "Must be a list.",
    "model_type": "Must be an object.",
    "dict_type": "Must be an object.",
    "float_type": "Must be a number.",
    "finite_number": "Must be a number.",
    "string_too_short": "Must have at least {min_length} characters.",
    "string_too_long": "Must have at most {max_length} characters.",
    "string_pattern_mismatch": "Must match the pattern {pattern}.",
    "too_short": "Must have at least {min_length} {unit}.",
    "too_long": "Must have at most {max_length} {unit}.",
    "greater_than_equal": "Must be at least {ge}.",
    "less_than_equal": "Must be at most {le}.",
    "literal_error": "Must be one of: {expected}.",
    "extra_forbidden": "This key is unknown.",
}


def decode(raw: bytes | bytearray) -> str:
    """Decode the bytes of a body. Raises Malformed if they are not UTF-8, or begin with a byte order mark."""
    try:
        text = raw.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        raise Malformed(f"{NOT_JSON} Byte {error.start + 1} is not UTF-8.") from None
    if text.startswith("\ufeff"):
        raise Malformed("The body begins with a byte order mark. Send UTF-8 without one.")
    return text


def parse_json(text: str) -> Any:
    """Parse a JSON text. Raises Malformed if it is invalid or an object repeats a key."""
    try:
        value = DECODER.decode(text)
        if SURROGATE.search(json.dumps(value, ensure_ascii=False) if "\\u" in text else ""):
            raise Malformed("The body contains half of a UTF-16 surrogate pair.")
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None
    except ValueError as error:
        at = f" See line {error.lineno}, column {error.colno}." if isinstance(error, json.JSONDecodeError) else ""
        raise Malformed(f"{NOT_JSON}{at}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise repeated(next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1))
    return value


def repeated(name: str) -> Malformed:
    """Return the failure of a body that repeats this key."""
    return Malformed(f"The body repeats the key {json.dumps(shortened(name))}.")


def _refuse(constant: str) -> Any:
    raise Malformed(f"The body contains {constant}, which is not JSON.")


def _integer(digits: str) -> int:
    return int(digits[:DIGITS_KEPT])


DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_integer)


def check(schema: type[M], value: Any, context: Mapping[str, Any]) -> tuple[M | None, Errors]:
    """Validate a parsed JSON value. Return (model, no errors), or (None, a message for each invalid field).

    `context`: further values that rules depend on, such as the current time (`now`).
    """
    if not isinstance(value, dict):
        return None, {"body": "Must be a JSON object."}
    model, faults = _validate(schema, value, context)
    faults |= schema.check_together(value, faults, context)
    return (None if faults else model), faults


def _validate(schema: type[M], value: Any, context: Mapping[str, Any]) -> tuple[M | None, Errors]:
    try:
        return schema.model_validate(value, context=context), {}
    except ValidationError as error:
        faults: Errors = {}
        for fault in error.errors(include_url=False):
            place = ".".join(shortened(str(part)) for part in fault["loc"]) or "body"
            faults.setdefault(place, _message(fault, schema))
        return None, faults


def check_query(schema: type[Q], pairs: Iterable[tuple[str, str]], *, now: int) -> tuple[Q | None, Errors]:
    """Validate query parameters at `now`. Return (model, no errors), or None and a message for each wrong parameter.

    `pairs`: names and values, with surrogates in place of bytes that are not UTF-8.
    """
    values: dict[str, str] = {}
    errors: Errors = {}
    names = {field.alias or name for name, field in schema.model_fields.items()}
    sent: dict[str, str] = {}
    for name, value in pairs:
        known = schema.other_names.get(name, name)
        if known not in names:
            if known in schema.names_to_check:
                values[known] = value
            continue
        first = sent.setdefault(known, name)
        if known in values and known in schema.lists:
            value = f"{values[known]},{value}"  # noqa: PLW2901 - joined
        elif known in values:
            errors[name] = "Must be given only once." if name == first else f"Must not be given together with {first}."
            continue  # the first value is checked, under the name that it was sent with
        values[known] = value
    unreadable = [name for name, value in values.items() if SURROGATE.search(value)]
    result, faults = check(schema, {**values, **dict.fromkeys(unreadable, "")}, {"now": now})
    faults |= dict.fromkeys(unreadable, NOT_UTF8)
    errors |= {sent.get(name, name): fault for name, fault in faults.items()}
    return (None if errors else result), errors


def shortened(name: str) -> str:
    """Return the name of a field as errors show it."""
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_required(schema: type[BaseModel], location: tuple[int | str, ...]) -> bool:
    """Return whether the value at this location is a field that must be sent, not an optional one nor an item."""
    models, required = [schema], False
    for part in location:
        fields = [each for model in models for name, each in model.model_fields.items() if part in {name, each.alias}]
        models = [each for field in fields for each in _models(field.annotation)] or models
        required = any(field.is_required() for field in fields)
    return required


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _message(fault: Any, schema: type[BaseModel]) -> str:
    kind, context = fault["type"], {name: _plain(value) for name, value in (fault.get("ctx") or {}).items()}
    if fault["input"] is None and isinstance(fault["loc"][-1], str) and kind != "extra_forbidden":
        kind = "missing"  # null is the same as an absent field, but not in a list
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_too_short" and context["min_length"] == 1:
        kind = "missing" if _is_required(schema, fault["loc"]) else "too_short"
    if kind in {"greater_than_equal", "less_than_equal"} and abs(next(iter(context.values()))) > MAX_ID:
        return "Is out of range."
    if kind == "too_short" and context["min_length"] == 1:
        return EMPTY
    unit = "characters" if isinstance(fault["input"], str) else "entries"
    return MESSAGES.get(kind, NOT_VALID).format(unit=unit, **context)


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
    may_be_oversized = (
        schema.read is None and len(raw) > MAX_VALUES and sum(map(raw.count, (b",", b"[", b"{"))) > MAX_VALUES
    )
    if may_be_oversized and (first := first_values(text)) is not None:
        return ParsedBody(None, None, _errors_of_oversized(schema, first, context), None)
    sent = (schema.read or parse_json)(text) if raw else _empty(schema)
    model, errors = check(schema, sent, context)
    has_nul = NUL in raw and NUL in raw.replace(b"\\\\", b"")
    if schema.read is None and NO_NUL not in errors.values() and has_nul:
        model, errors = None, {"body": NO_NUL} | errors  # in a key, or in a field that the schema does not have
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
