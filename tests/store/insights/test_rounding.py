"""Figures with decimals are rounded from exact fractions, halves up."""

from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as some

from musicsvc.store.insights.figures import ratio
from tests.support.oracle import half_up


@given(some.integers(-(10**12), 10**12), some.integers(1, 10**12), some.integers(0, 3))
@example(225, 100, 1)
@example(-225, 100, 1)
@example(215, 100, 1)  # as a binary fraction less than 2.15
@example(9, 8, 2)
@example(-1, 2, 0)
def test_a_ratio_is_the_nearest_decimal_and_of_two_the_higher(numerator: int, denominator: int, decimals: int) -> None:
    found = ratio(numerator, denominator, decimals)

    exact, unit = Fraction(numerator, denominator), Fraction(1, 10**decimals)
    decimal = Fraction(Decimal(repr(found)))
    assert decimal % unit == 0
    assert -unit / 2 < decimal - exact <= unit - unit / 2
    assert found == half_up(exact, decimals)
    halves_up = (Decimal(numerator) * 2 * 10**decimals + denominator) / (2 * denominator)
    if halves_up == halves_up.to_integral_value(ROUND_FLOOR):  # a half, or a whole step
        assert found == float(halves_up.to_integral_value(ROUND_FLOOR) / 10**decimals)
    assert str(found) != "-0.0"
