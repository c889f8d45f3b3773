"""Tell empty cells from others, and remember what short texts mean."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

LONGEST_CACHED = 64  # characters
T = TypeVar("T")


def unless_blank(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return `parse` for cells that are not blank, with a cache of short texts, for columns with few values."""

    def parsed(value: Any) -> T | None:
        return None if is_blank(value) else parse(value)

    cached = lru_cache(1024)(parsed)
    return lambda value: (cached if isinstance(value, str) and len(value) <= LONGEST_CACHED else parsed)(value)


def is_blank(value: Any) -> bool:
    """Return True if the cell is empty, has only spaces, or is NaN (the empty value of data frames)."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))
