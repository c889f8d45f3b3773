"""Return query results page by page. Every sort order ends with the id, so that pages neither repeat nor skip rows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from peewee import SQL, Model, Ordering, Tuple, fn

from musicsvc.store.engine.list_blocks import LONGEST, LongList
from musicsvc.store.engine.sql import compiled

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
    """A page of a list: the ids of the rows on the page, and the number of rows of the whole list (`total`).

    `load` returns the rows with the given ids, in the order of the list. Rows are loaded only when they are used.
    """

    ids: list[int]
    total: int
    page: Page
    load: Callable[[Collection[int]], list[Row]]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the page, loaded on first access, which must be in the transaction that listed the page."""
        return self.load(self.ids) if self.ids else []


class ListQuery(NamedTuple):
    """The queries of a list: `keys` selects only the id of each row, `rows` all columns; `order` sorts both queries."""

    keys: Any
    rows: Any
    order: Sequence[Any]


def columns(row: type[Any], table: type[Model], **expressions: Any) -> tuple[Any, ...]:
    """Return a column to select for each required field of the dataclass `row`: from `expressions`, else of `table`."""
    names = [each.name for each in fields(row) if each.default is MISSING and each.default_factory is MISSING]
    return tuple(expressions[name] if name in expressions else getattr(table, name) for name in names)


def paginate(
    build: Callable[..., ListQuery],
    page: Page,
    make: Callable[..., Row],
    *arguments: object,
    counted: LongList | None,
    more: Sequence[int] = (),
) -> Listing[Row]:
    """Return one page of a list. `build` builds the queries from `arguments`; `make` creates a row from its columns.

    The SQL is kept for further calls (see `compiled`), so `build` gets placeholders and must be a function of a module.
    `counted`: the kind of list, if its length is stored by owner (the first of `arguments`); if None, rows are counted.
    `more`: ids of a few further rows to merge into the list, which must then be in descending order of id.
    """
    if counted is None:
        ((own,),) = _count(*arguments, build=build)
    else:
        own = counted.total(arguments[0] if arguments else 0)
    total, before = own + len(more), page.offset
    size = min(page.size, total - before)
    # Of the rows before the page, at most as many belong to others as there are.
    start = max(0, before - len(more))
    ids = _read(build, arguments, start, min(before + size, own) - start, own, counted) if size > 0 else []
    if more and size > 0:
        among = [each for each in more if not start or each < ids[0]]
        skipped = before - start - (len(more) - len(among))
        ids = sorted([*ids, *among], reverse=True)[skipped : skipped + size]
    return Listing(ids, total, page, lambda some: [make(*row) for row in _rows(some, *arguments, build=build)])


def _read(
    build: Callable[..., ListQuery],
    arguments: tuple[object, ...],
    before: int,
    size: int,
    total: int,
    counted: LongList | None,
) -> list[int]:
    """Return the ids of `size` rows after the first `before` rows of the list.

    Read from the nearer end of the list or, if the list is long, from the block that contains the page.
    """
    after = total - before - size
    if counted is not None and counted.descending is not None and min(before, after) > LONGEST:
        smaller = after if counted.descending else before
        block = counted.locate(arguments[0] if arguments else 0, smaller)
        if block is not None:
            span = size, smaller - block.before, block.first_key, block.first_id
            found = _ids_from_block(*span, *arguments, build=build)
            return [key for (key,) in (reversed(found) if counted.descending else found)]
    if after < before:
        return [key for (key,) in reversed(_ids_from_end(size, after, *arguments, build=build))]
    return [key for (key,) in _ids(size, before, *arguments, build=build)]


@compiled
def _count(*arguments: object, build: Callable[..., ListQuery]) -> Any:
    return build(*arguments).keys.select(fn.COUNT(SQL("*")))


@compiled
def _ids(limit: int, offset: int, *arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    return query.keys.order_by(*query.order).limit(limit).offset(offset)


@compiled
def _ids_from_end(limit: int, offset: int, *arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    return query.keys.order_by(*map(_opposite, query.order)).limit(limit).offset(offset)


@compiled
def _ids_from_block(
    limit: int, offset: int, first_key: int, first_id: int, *arguments: object, build: Callable[..., ListQuery]
) -> Any:
    """Return a query for ids in ascending order, beginning with the row that has the sort key (first_key, first_id)."""
    query = build(*arguments)
    key, *rest = columns = [each.node if isinstance(each, Ordering) else each for each in query.order]
    begin = Tuple(key, *rest) >= Tuple(first_key, first_id) if rest else key >= first_key
    return query.keys.where(begin).order_by(*columns).limit(limit).offset(offset)


@compiled
def _rows(ids: Collection[int], *arguments: object, build: Callable[..., ListQuery]) -> Any:
    query = build(*arguments)
    (key,) = query.keys.selected_columns
    return query.rows.where(key.in_(ids)).order_by(*query.order)


def _opposite(term: Any) -> Any:
    """Return an ORDER BY term that reverses the order of `term`."""
    if not isinstance(term, Ordering):
        return term.desc()
    nulls = {"FIRST": "LAST", "LAST": "FIRST"}.get(term.nulls or "")
    return Ordering(term.node, "ASC" if term.direction == "DESC" else "DESC", nulls=nulls)
