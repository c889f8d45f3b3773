"""Tell empty cells from others."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def unless_blank(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return `parse` for cells that are not blank."""
    return lambda value: None if is_blank(value) else parse(value)


def is_blank(value: Any) -> bool:
    """Return True if the cell is empty, has only spaces, or is NaN (the empty value of data frames)."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def has_objects(value: Any) -> bool:
    """Return True for an object of JSON, and for a list with one."""
    return any(isinstance(each, dict) for each in (value if isinstance(value, list) else [value]))
