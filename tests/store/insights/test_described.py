"""The rows that say how figures are shown describe all of them."""

import re
from dataclasses import fields
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from musicsvc.store.insights.figures import FIGURES, IN_DATA, Figure, Figures, ratio
from musicsvc.store.insights.listening.listening import LISTENING, Listening
from tests.support.oracle import rounded


def test_each_figure_has_a_row() -> None:
    assert ["window", *(each.key for each in FIGURES), "first_day"] == [each.name for each in fields(Figures)]
    assert ("window", *(each.key for each in LISTENING)) == Listening._fields


@pytest.mark.parametrize("rows", [IN_DATA, LISTENING], ids=["figures", "listening"])
def test_notes_and_growth_name_figures(rows: tuple[Figure, ...]) -> None:
    paths = {each.path for each in rows}
    named = {path for each in rows for path in (*re.findall(r"{(.+?)}", each.note), each.growth) if path}
    assert named <= paths
    assert not named & {each.path for each in rows if each.card}
    assert len(paths) == len({each.name for each in rows}) == len(rows)


def test_columns_with_decimals_have_a_name_that_excel_and_parquet_know() -> None:
    assert {each.name for each in FIGURES if isinstance(each.example, float)} == {
        each.name for each in FIGURES if each.name.endswith("_change")
    }


# Figures with decimals are rounded from exact fractions, halves away from zero, as ROUND of SQL and spreadsheets.

HALVES_AWAY_FROM_ZERO = ROUND_HALF_UP  # the name that `decimal` gives it


@given(some.integers(-(10**12), 10**12), some.integers(1, 10**12), some.integers(0, 3))
@example(225, 100, 1)
@example(-225, 100, 1)
@example(-1875, 100, 1)
@example(215, 100, 1)  # as a binary fraction less than 2.15
@example(-215, 100, 1)
@example(9, 8, 2)
@example(-1, 2, 0)
@example(-1, 3, 0)
def test_a_ratio_is_the_nearest_decimal_and_of_two_the_one_further_from_zero(
    numerator: int, denominator: int, decimals: int
) -> None:
    found = ratio(numerator, denominator, decimals)

    exact, unit = Fraction(numerator, denominator), Fraction(1, 10**decimals)
    decimal = Fraction(Decimal(repr(found)))
    assert decimal % unit == 0
    assert -unit / 2 < abs(exact) - abs(decimal) < unit / 2 or abs(decimal) - abs(exact) == unit / 2
    assert found == rounded(exact, decimals)
    assert str(found) != "-0.0"


@given(some.integers(-(10**12), 10**12), some.integers(0, 3), some.integers(0, 6))
@example(-1875, 1, 1)
@example(-5, 0, 1)
def test_halves_go_where_round_of_spreadsheets_puts_them(number: int, decimals: int, more: int) -> None:
    exact = Decimal(number).scaleb(-decimals - more)
    expected = exact.quantize(Decimal(1).scaleb(-decimals), HALVES_AWAY_FROM_ZERO, Context(prec=40))

    assert ratio(number, 10 ** (decimals + more), decimals) == float(expected)
