"""Cells with numbers."""

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from musicsvc.store.importing.cells.blanks import is_blank

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
LONGEST_NUMBER = 40


def number(value: Any) -> Decimal | None:
    """Parse a number in decimal or scientific notation. Raises ValueError for anything else."""
    if is_blank(value):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError("must be a number")  # noqa: TRY004 - the caller handles ValueError
    found = str(value).strip()
    if len(found) > LONGEST_NUMBER or not NUMBER.fullmatch(found):
        raise ValueError("must be a number")
    return Decimal(found)


def round_half_up(value: Decimal | int) -> int:
    """Round to the nearest integer. Halves are rounded away from zero."""
    return value if isinstance(value, int) else int(value.to_integral_value(ROUND_HALF_UP))


def whole(value: Any, lowest: int, highest: int, *, first: bool = False) -> int | None:
    """Parse a number and round it to an integer, `first` or after the comparison with the bounds.

    Raises ValueError below `lowest` or above `highest`.
    """
    found: Decimal | int | None
    plain = isinstance(value, str) and len(value) < LONGEST_NUMBER and value.isascii() and value.isdigit()
    found = int(value) if plain else number(value)
    if found is None:
        return None
    if first and lowest - 1 < found < highest + 1:
        found = round_half_up(found)
    if not lowest <= found <= highest:
        raise ValueError(f"must be between {lowest:,} and {highest:,}")
    return round_half_up(found)


def number_or_none(value: Any) -> Decimal | None:
    """Return the number in a cell, or None if the cell has anything else."""
    try:
        return number(value)
    except ValueError:
        return None


def integer(value: Any) -> int | None:
    """Return the integer in a cell such as `7` or `7.0`, or None if the cell has anything else."""
    found = number_or_none(value)
    return int(found) if found is not None and found == found.to_integral_value() else None
