"""Packed sets of listeners are merged, appended to and counted in each of their forms."""

import random
from itertools import product

import pytest

from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import counts, listeners
from musicsvc.store.plays.rollups.listeners import FEW, WIDTH
from tests.support.reported_plays import world


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


def test_a_row_holds_at_most_64_ids_after_its_bitmap(store: Store) -> None:
    store.write(world).result()

    def play() -> list[int]:
        """Record plays of one listener one by one. Return the size of the row's set after each."""
        (person,) = listeners.ensure(["opaque:x"]).values()
        sizes: list[int] = []
        for slot in range(200):
            ingest.record([PlayRow(slot, 1, person, WITHOUT_ID, slot * SLOT, None, 0)])
            ((size,),) = fetch(f"SELECT length(listeners) FROM play_count WHERE {counts.KIND} = 1")
            sizes.append(size // WIDTH)
        return sizes

    assert store.write(play).result() == [*range(1, 64), *range(1, 65), *range(1, 65), *range(1, 10)]
