"""Return query results page by page. Every sort order ends with the id, so that pages neither repeat nor skip rows."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from peewee import SQL, fn

from musicsvc.store.engine.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from peewee import Model

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page:
    """A requested page: the page number, counted from 1, and the number of rows per page."""

    number: int = 1
    size: int = 20

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size


@dataclass
class Listing(Generic[Row]):
    """A page of a list: the ids of its rows, and the number of rows of the whole list.

    `load` returns the rows with these ids in the order of the list. The rows are loaded when they are needed.
    """

    ids: list[int]
    total: int
    page: Page
    load: Callable[[Collection[int]], list[Row]]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the page. First use this in the transaction that lists the page."""
        return self.load(self.ids) if self.ids else []


class ListQuery(NamedTuple):
    """The queries of a list: `keys` selects the id of every row, `rows` the columns; `order` sorts both.

    `total` counts the rows of the list if that is faster than counting `keys`.
    """

    keys: Any
    rows: Any
    order: Sequence[Any]
    total: Any = None


def columns(row: type[Any], table: type[Model], **expressions: Any) -> tuple[Any, ...]:
    """Return a query column for each required field of dataclass `row`. `expressions` replace columns of `table`."""
    names = [each.name for each in fields(row) if each.default is MISSING and each.default_factory is MISSING]
    return tuple(expressions[name] if name in expressions else getattr(table, name) for name in names)


def paginate(build: Callable[..., ListQuery], page: Page, make: Callable[..., Row], *arguments: object) -> Listing[Row]:
    """Return one page of a list. `make` builds a row of its columns. `build` is called with `arguments`.

    The queries are compiled (see `compiled`), so `build` gets placeholders and must be a function of a module.
    """
    ((total,),) = _total(*arguments, build=build)
    # Rows before the page: only ids are read.
    ids = [key for (key,) in _ids(page.size, page.offset, *arguments, build=build)] if page.offset < total else []
    return Listing(ids, total, page, lambda some: [make(*row) for row in _rows(some, *arguments, build=build)])


@compiled
def _total(*arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    return query.keys.select(fn.COUNT(SQL("*"))) if query.total is None else query.total


@compiled
def _ids(limit: int, offset: int, *arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    return query.keys.order_by(*query.order).limit(limit).offset(offset)


@compiled
def _rows(ids: Collection[int], *arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    (key,) = query.keys.selected_columns
    return query.rows.where(key.in_(ids)).order_by(*query.order)
