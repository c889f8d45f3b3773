"""Cells with numbers."""

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.notations import Fitted, Notation, Parse, Sample, fault_of

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
PLACE = re.compile(r"([0-9]{1,5}) ?(?:/|of|von|de) ?[0-9]{1,5}", re.IGNORECASE)
ZERO = re.compile(r"(0+)(?:\.0*)?")
LONGEST_NUMBER = 40
MOST_ON_DISC = 99
SINGLE = "must be 1, as each row is one play"
COUNTS_ROWS = "must be the place on a disc; the column counts the rows"
EITHER = "can be thousands or a fraction; write the number without a comma"


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


def readings(text: str) -> list[Decimal]:
    """Return the numbers that a text can mean: with a decimal point or comma, or with commas between thousands."""
    text = text.strip()
    if len(text) > LONGEST_NUMBER:
        return []
    if NUMBER.fullmatch(text):
        return [Decimal(text)]
    found = [Decimal(text.replace(",", "."))] if COMMA.fullmatch(text) else []
    return [*found, Decimal(text.replace(",", ""))] if THOUSANDS.fullmatch(text) else found


def whole(value: Any, lowest: int, highest: int, *, first: bool = False) -> int | None:
    """Parse a number and round it to an integer, `first` or after the comparison with the bounds.

    Raises ValueError below `lowest` or above `highest`, and for a comma that can be either of two things.
    """
    found: Decimal | int | None
    before, point, behind = value.partition(".") if isinstance(value, str) and value.isascii() else ("", "", "")
    if before.isdigit() and len(value) < LONGEST_NUMBER and (not point or (first and behind.isdigit())):
        found = int(before) + (behind >= "5")  # as most cells are, rounded
    else:
        try:
            found = number(value)
        except ValueError:
            some = readings(value) if isinstance(value, str) else []
            within = [each for each in some if lowest <= each <= highest] or some
            if len(within) != 1:
                raise ValueError(EITHER if some else "must be a number") from None
            found = within[0]
    if found is None:
        return None
    if first and lowest - 1 < found < highest + 1:
        found = round_half_up(found)
    if not lowest <= found <= highest:
        raise ValueError(f"must be between {lowest:,} and {highest:,}")
    return round_half_up(found)


def place(value: Any, lowest: int, highest: int) -> int | None:
    """Parse a number that counts from 1, also `3/15`. 0 is none. Raises ValueError for others."""
    of_total = PLACE.fullmatch(value.strip()) if isinstance(value, str) and not value.isdigit() else None
    number_of = of_total[1] if of_total else value
    if isinstance(number_of, str | float | int) and ZERO.fullmatch(str(number_of).strip()):
        return None
    if (found := number_or_none(number_of)) is not None and found != found.to_integral_value():
        raise ValueError("must be a whole number")
    return whole(number_of, lowest, highest)


def fit_places(parse: Parse, sample: Sample) -> Fitted:
    """Refuse a column that counts rows of several albums, or more than a disc has tracks: their places in the file."""
    numbers = [number_or_none(value) for _, value in sample.cells]
    counts_rows = len(numbers) > (1 if sample.listed else MOST_ON_DISC) and numbers == [*range(1, len(numbers) + 1)]
    return Fitted(partial(refuse, COUNTS_ROWS) if counts_rows and not sample.ours else parse)


def single(value: Any) -> None:
    """Raise ValueError for a number other than 1."""
    if not is_blank(value) and number_or_none(value) != 1:
        raise ValueError(SINGLE)


def fit_singles(sample: Sample) -> Fitted:
    """Refuse all cells of a column if one of the first rows has a number other than 1: its rows are sums."""
    sums = next((f"{SINGLE}; line {line} has {value}" for line, value in sample.cells if fault_of(single, value)), None)
    return Fitted(single if sums is None else partial(refuse, sums))


def refuse(reason: str, _: Any) -> Any:
    """Raise ValueError with the reason, whatever the cell is."""
    raise ValueError(reason)


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


def _first(found: re.Match[str] | None) -> str | None:
    return found and found[1]


NOTATIONS = (
    Notation("a number", readings, "120 = 120 | 119.6 = 120 | 1.2e2 = 120"),
    Notation("with a decimal comma, or with commas between thousands", readings, "119,6 = 120 | 120,000 = 120"),
)
PLACES = (
    Notation("number/total", lambda text: _first(PLACE.fullmatch(text)), "3/15 = 3 | 03 of 15 = 3", source="MP3 tags"),
    Notation("0: none", lambda text: _first(ZERO.fullmatch(text)), "0 =  | 0/15 = ", source="players"),
)
