"""Parsing of forms."""

import pytest

from musicsvc.errors import Malformed
from musicsvc.server.schemas.pages.admin import ReasonForm
from musicsvc.server.schemas.pages.form import MOST_FIELDS, parse_form


def test_the_fields_of_a_form_are_kept_as_they_were_typed() -> None:
    parsed = parse_form(ReasonForm, b"reason=+two%0D%0Alines&other=", {})
    assert (parsed.sent, parsed.errors) == ({"reason": " two\nlines", "other": ""}, {})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"reason=a&reason=a", "The form repeats a field."),
        (b"reason", "The form is not valid."),
        (b"reason=%ff", "The form is not valid."),
        (b"reason=\xff", "not valid"),
        (b"&".join(b"f%d=" % each for each in range(MOST_FIELDS + 1)), "The form is not valid."),
    ],
)
def test_what_is_no_form_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        parse_form(ReasonForm, raw, {})
