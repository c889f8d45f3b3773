"""The base class of forms, types of their fields, and the parser of their bodies."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BeforeValidator

from musicsvc.errors import Malformed, TooLarge
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.reading import ParsedBody, check, decode

MOST_FIELDS = 1_000
MOST_ESCAPES = 80_000  # of single bytes; decoding takes 30 ms
TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field, no secret

Checkbox = Annotated[bool, BeforeValidator(lambda sent: sent in {True, "on"})]  # give the field the default False


class Form(Body):
    """Base of the forms of pages. Fields are strings, numbers with `DIGITS_ONLY`, or `Checkbox`.

    A field that was left empty counts as absent, so optional fields need a default; of these, a blank one does too.
    """


def parse_form(schema: type[Body], raw: bytes | bytearray, context: Mapping[str, Any]) -> ParsedBody:
    """Parse the body of a form and validate it with the schema. Raises Malformed if it is not valid, or TooLarge."""
    if raw.count(b"%") > MOST_ESCAPES:
        raise TooLarge(f"The form has more than {MOST_ESCAPES:,} characters that are escaped as %XX. Send less text.")
    try:
        pairs = parse_qsl(
            decode(raw), keep_blank_values=True, strict_parsing=bool(raw), errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise Malformed("The form is not valid.") from None
    sent = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if len(sent) < len(pairs):
        raise Malformed("The form repeats a field.")
    optional = {each.alias or name for name, each in schema.model_fields.items() if not each.is_required()}
    given = {name: value for name, value in sent.items() if value.strip() or (value and name not in optional)}
    model, errors = check(schema, given, context)
    return ParsedBody(sent, model, errors, schema.get_resource(sent, errors))
