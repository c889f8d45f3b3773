"""A name stands for an id if only one row has it."""

import pytest

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.catalog.names import find_id, with_id
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist


def test_a_name_is_the_one_that_the_account_manages_or_has_its_id_beside_it(store: Store) -> None:
    def load() -> tuple[int, list[int]]:
        label = users.create("ann@label.test", now=1).id
        clara = ("Clara", None), ("Clara", label), ("Clara Wieck", label)
        names = *clara, ("Louise", None), ("1975", None), ("Ann\tand\nBob", None)
        artists = [Artist.create(name=name, manager=manager, created_at=1).id for name, manager in names]
        artists.append(Artist.create(name=with_id("Louise", artists[3]), created_at=1).id)
        return label, artists

    label, (other, clara, wieck, louise, band, duo, odd) = store.write(load).result()

    def find(text: str, manager: int | None = label) -> int:
        return store.read(lambda: find_id("artist", text, manager_id=manager)).result()

    assert [find(text) for text in ("Clara", " Clara Wieck ", "Louise")] == [clara, wieck, louise]
    assert [find(with_id("Clara", each)) for each in (other, clara)] == [other, clara]
    assert [find(text) for text in ("1975", with_id("1975", band), "9" * 40)] == [1975, band, 2**63 - 1]
    assert find(with_id("Ann\tand\nBob", duo).replace("\n", "")) == duo  # browsers drop line breaks of a field
    for text, manager, message in (
        ("Clara", None, f"Several artists are named Clara: {other}, {clara}. Give an id."),
        ("Clara", band, f"Several artists are named Clara: {other}, {clara}. Give an id."),
        (with_id("Louise", louise), None, f"Several artists are named Louise ({louise}): {louise}, {odd}."),
        ("clara", label, "There is no artist named clara."),
        (with_id("Clara", wieck), label, f"There is no artist named Clara ({wieck})."),
        ("", label, "There is no artist named ."),
        ("C" * 10_000, label, "There is no artist with a name of 10,000 characters."),
        ("9" * 10_000, label, "There is no artist with a name of 10,000 characters."),
    ):
        with pytest.raises(Failure) as failure:
            find(text, manager)
        assert failure.value.message.startswith(message)
