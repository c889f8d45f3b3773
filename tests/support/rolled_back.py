"""Units of work that leave a store as it was."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store

T = TypeVar("T")


class UndoError(Failure):
    """Raised to roll a unit back."""


def rolled_back(store: Store, unit: Callable[[], T]) -> T:
    """Run the unit, roll it back, and return its result."""
    found: list[T] = []

    def attempt() -> None:
        found.append(unit())
        raise UndoError("")

    with pytest.raises(UndoError):
        store.write(attempt).result()
    return found[-1]
