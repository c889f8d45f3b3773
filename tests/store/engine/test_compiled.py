"""Peewee queries that are built once and run with new parameters."""

from collections.abc import Collection
from typing import Any

import pytest

from musicsvc.store.engine.compiled import compiled
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag


@compiled
def _genres(names: Collection[str], least: int, *, reverse: bool = False) -> Any:
    order = Genre.id.desc() if reverse else Genre.id
    known = Genre.display_name.in_(["A", "B", "C"])
    return Genre.select(Genre.name).where(Genre.name.in_(names), known, Genre.id >= least).order_by(order)


@pytest.fixture
def genres(store: Store) -> list[int]:
    """The ids of the genres a, b and c."""
    return store.write(lambda: [Genre.create(name=name, display_name=name.upper()).id for name in "abc"]).result()


def test_each_call_has_its_own_arguments(store: Store, genres: list[int]) -> None:
    def names(*arguments: Any, **constants: Any) -> str:
        return "".join(name for (name,) in store.read(lambda: _genres(*arguments, **constants)).result())

    assert names(["a", "c"], genres[0]) == "ac"
    assert names({"b", "c", "a"}, genres[1]) == "bc"
    assert names(["c", "b", "x"], genres[0], reverse=True) == "cb"
    assert names(["c", "b", "x"], genres[0], reverse=False) == "bc"
    assert names([], genres[0]) == ""
    assert names(["b"], genres[0]) == "b"


def test_a_query_is_built_once_for_each_combination_of_constants(store: Store, genres: list[int]) -> None:
    built = []

    @compiled
    def find(least: int, *, table: type[Genre | Tag]) -> Any:
        built.append(table)
        return table.select(table.id).where(table.id >= least)

    def unit() -> list[int]:
        return [len(find(least, table=table)) for least in genres for table in (Genre, Tag)]

    assert store.read(unit).result() == [3, 0, 2, 0, 1, 0]
    assert store.read(unit).result() == [3, 0, 2, 0, 1, 0]
    assert built == [Genre, Tag]
