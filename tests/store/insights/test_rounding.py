"""Figures with decimals are rounded from exact fractions, halves away from zero, as ROUND of SQL and spreadsheets."""

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as some

from musicsvc.store.insights.figures import ratio
from tests.support.oracle import rounded

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
