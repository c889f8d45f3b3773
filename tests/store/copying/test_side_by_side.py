"""Rows of two databases are brought together by their keys."""

from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.copying.tables import side_by_side

KEYS = st.tuples(st.integers(0, 3), st.binary(max_size=2))
Content = dict[tuple[int, bytes], str]
CONTENT = st.dictionaries(KEYS, st.text(max_size=1), max_size=12)


@given(CONTENT, CONTENT)
def test_each_key_of_either_database_comes_once_and_in_order(one: Content, other: Content) -> None:
    sides = [iter(sorted((*key, value) for key, value in each.items())) for each in (one, other)]
    found = list(side_by_side(sides[0], sides[1], 2))

    keys = sorted({*one, *other})
    rows = [tuple((*key, each[key]) if key in each else None for each in (one, other)) for key in keys]
    assert found == rows
