"""Counts with nouns, formulas, escaped control characters, and validation errors in plain words."""

import re
from typing import Annotated, Any, Literal

import hypothesis.strategies as some
import pytest
from hypothesis import example, given
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from musicsvc import wording
from musicsvc.wording import escape_controls, explain_validation, quantity


def _refuse(_value: str) -> str:
    raise ValueError("must be shorter.")


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 tracks"), (1, "1 track"), (2, "2 tracks"), (2_000, "2,000 tracks")]
)
def test_a_count_agrees_with_its_noun(number: int, expected: str) -> None:
    assert quantity(number, "track") == expected


def test_an_irregular_plural_is_given() -> None:
    assert [quantity(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


def test_control_characters_are_escaped() -> None:
    assert escape_controls("a\x1b[31m\nü") == "a\\x1b[31m\\nü"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, "x", "must be a whole number, not 'x'"),
        (float, "x", "must be a number, not 'x'"),
        (bool, "x", "must be true or false, not 'x'"),
        (Annotated[int, Field(ge=1)], 0, "must be 1 or more, not 0"),
        (Annotated[int, Field(le=64)], 65, "must be 64 or less, not 65"),
        (Annotated[float, Field(gt=0)], 0.0, "must be more than 0, not 0.0"),
        (Literal["info", "debug"], "x", "must be 'info' or 'debug', not 'x'"),
        (tuple[int, ...], 3, "must be a list, not 3"),
        (str, [1], "must be a text"),
        (Annotated[str, AfterValidator(_refuse)], "x", "must be shorter"),
        (set[int], 3, "must be valid, not 3"),
    ],
)
def test_validation_errors_name_the_rule_and_the_value(kind: Any, value: object, expected: str) -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(value)
    assert explain_validation(dict(raised.value.errors()[0])) == expected


@given(some.text("'=+-@\t\r\n\va", max_size=12))
@example("''=1")
@example("a\r\r=")
def test_a_quoted_formula_is_none_and_comes_back_as_it_was(text: str) -> None:
    quoted = wording.quoted(text)
    assert not re.search(r"(?:\A|[\r\n\v])[=+\-@\t\r]", quoted)
    assert wording.unquoted(quoted) == text
