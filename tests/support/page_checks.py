"""Checks of the pages of a long list."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from musicsvc.store.engine.pagination import Listing, Page

SIZES = (1, 7, 20, 100)


def check_pages(ids: Sequence[int], pages: Callable[[Page], Listing[Any]], chance: random.Random) -> None:
    """Compare pages of all sizes with the ids of the whole list."""
    for size in SIZES:
        last = -(-len(ids) // size)
        for number in {1, 2, 1 + last // 3, 1 + last // 2, last, last + 1, chance.randrange(1, last + 1)}:
            found = pages(Page(number, size))
            assert [row.id for row in found.rows] == list(ids[(number - 1) * size : number * size]), (size, number)
            assert found.total == len(ids)
