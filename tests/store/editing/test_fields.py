"""The texts of fields mean the values that they show."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.catalog.field_texts import TYPING
from musicsvc.store.catalog.fields import Field

LINE = st.text(min_size=1).filter(lambda text: text == text.strip() and not {*text} & {*"\r\n"})
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": LINE,
    "paragraph": st.text(min_size=1).filter(lambda text: text == text.strip() and "\r" not in text),
    "date": st.dates().map(str),
    "number": st.integers(1, 9_999),
    "length": st.integers(1, 86_400_000),
    "price": st.floats(0, 1e9),
    "yes or no": st.booleans(),
    "words": st.lists(LINE, min_size=1),
}
NAMES = st.lists(LINE.filter(lambda text: not text.isdecimal()), min_size=1)


@pytest.mark.parametrize("form", TYPING)
@given(data=st.data())
def test_a_value_is_read_from_the_text_that_shows_it(form: Any, data: st.DataObject) -> None:
    field = Field("any", form, "Any")
    many = form == "artists"
    value = data.draw(VALUES.get(form, NAMES if many else NAMES.map(lambda names: names[0])))
    assert field.parse(field.show(value)) == value


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("length", " 3:45 ", 225_000),
        ("length", "1:02:03.5", 3_723_500),
        ("length", "225000", 225_000),
        ("length", "3:60", "3:60"),
        ("artists", "7, 8", [7, 8]),
        ("artists", "Earth, Wind & Fire; 8", ["Earth, Wind & Fire", 8]),
        ("artists", "Nobody; Two\n8\n", ["Nobody; Two", 8]),
        ("words", "slow; ; river", ["slow", "river"]),
        ("yes or no", "YES", True),
        ("yes or no", "perhaps", "perhaps"),
        ("number", "", None),
    ],
)
def test_people_type_values_in_several_ways(form: Any, text: str, value: Any) -> None:
    assert Field("any", form, "Any").parse(text) == value
