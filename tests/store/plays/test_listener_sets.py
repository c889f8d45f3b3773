"""Packed sets of listeners are merged, appended to and counted in each of their forms."""

from __future__ import annotations

import random
from itertools import product

import pytest

from musicsvc.store.plays.rollups import listeners
from musicsvc.store.plays.rollups.listeners import FEW, WIDTH


def test_a_packed_set_has_as_many_listeners_as_its_union() -> None:
    chance = random.Random(2)
    for size in (0, 1, 5, 40, 900):
        some = [chance.randrange(1, 500) for _ in range(size)]
        for packed in (listeners.pack(some), listeners.merge([listeners.pack(some)])):
            for more in (b"", listeners.pack([3, 700, 3])):
                assert listeners.count(packed + more) == len(listeners.union([packed + more]))
                assert listeners.count(packed + more) == len({*some, *([3, 700] if more else [])})


@pytest.mark.parametrize("distance", [1, 70_000])
def test_sets_in_every_form_merge_to_their_union_in_every_order(distance: int) -> None:
    """A bitmap of consecutive ids is smaller than FEW integers, one of distant ids is larger."""
    sets = [set(range(7, 7 + size * distance, distance)) for size in (0, 1, FEW - 1, FEW, FEW + 1, 200)]
    sets.append({5, 6})
    forms = [
        (each, packed) for each in sets for packed in (listeners.pack(each), listeners.merge([listeners.pack(each)]))
    ]
    for (left, one), (right, other) in product(forms, forms):
        merged = listeners.merge([one, other])
        assert set(listeners.union([merged])) == left | right
        assert set(listeners.union([listeners.merge([other, merged, one])])) == left | right


def test_a_merged_set_holds_an_id_once_unless_it_is_small() -> None:
    assert listeners.merge([listeners.pack([4] * (FEW + 1))]) == listeners.pack([4])
    few = listeners.pack(range(FEW))
    assert listeners.merge([few, few]) == few
    assert len(listeners.merge([listeners.pack(range(1000))])) < FEW * WIDTH
