"""Statements that run beside Peewee, queries that are built once, and the settings of SQLite's connections."""

from collections.abc import Collection
from functools import partial
from typing import Any

import pytest

from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag


def _pragmas() -> list[int]:
    """Return the size of the memory map and of the page cache."""
    return [int(sql.fetch(f"PRAGMA {name}")[0][0]) for name in ("mmap_size", "cache_size")]


@pytest.mark.only_on("sqlite")
def test_reads_without_caches_leave_the_connection_as_it_was(store: Store) -> None:
    def unit() -> list[list[int]]:
        found = [_pragmas()]
        with sql.without_memory_map():
            found.append(_pragmas())
        found.append(_pragmas())
        with sql.without_cache():
            found.append(_pragmas())
        return [*found, _pragmas()]

    (size, pages), *found = store.read(unit).result()
    assert size > 0
    assert found == [[0, pages], [size, pages], [0, -1000], [size, pages]]


@pytest.mark.only_on("sqlite")
def test_connections_have_their_settings(store: Store) -> None:
    full, memory = 2, 2
    common = {"foreign_keys": 1, "synchronous": full, "journal_mode": "wal"}
    writing = common | {"cache_size": -16_000, "temp_store": memory, "wal_autocheckpoint": 4_000, "query_only": 0}
    reading = common | {"cache_size": -8_000, "query_only": 1}
    assert store.write(lambda: {name: sql.fetch(f"PRAGMA {name}")[0][0] for name in writing}).result() == writing
    assert store.read(lambda: {name: sql.fetch(f"PRAGMA {name}")[0][0] for name in reading}).result() == reading


def test_integers_are_a_table(store: Store) -> None:
    def found(values: list[int]) -> list[int]:
        given, value = sql.table_of(values)
        source = "(SELECT 1 AS n UNION SELECT -5 UNION SELECT 4611686018427387904) AS numbers"
        rows = sql.fetch(f"SELECT n FROM {given} CROSS JOIN {source} WHERE n = given.value ORDER BY n", value)
        return [n for (n,) in rows]

    asked: list[list[int]] = [[1], [7], [-5, 1, *range(10, 3000)], [1 << 62, 1]]
    answers = [store.read(partial(found, values)).result() for values in asked]
    assert answers == [[1], [], [-5, 1], [1, 1 << 62]]


@sql.compiled
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

    @sql.compiled
    def find(least: int, *, table: type[Genre | Tag]) -> Any:
        built.append(table)
        return table.select(table.id).where(table.id >= least)

    def unit() -> list[int]:
        return [len(find(least, table=table)) for least in genres for table in (Genre, Tag)]

    assert store.read(unit).result() == [3, 0, 2, 0, 1, 0]
    assert store.read(unit).result() == [3, 0, 2, 0, 1, 0]
    assert built == [Genre, Tag]
