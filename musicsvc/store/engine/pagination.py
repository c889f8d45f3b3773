"""Pagination of lists. Every sort order ends with the id, so that no row appears twice or is skipped."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from peewee import SQL, fn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peewee import Model

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page:
    """A requested page: `size` is the number of rows per page, and the first page has the number 1."""

    number: int = 1
    size: int = 20

    @property
    def offset(self) -> int:
        """The number of rows before the page."""
        return (self.number - 1) * self.size


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    rows: list[Row]
    total: int
    page: Page


def columns(row: type[Any], table: type[Model], **expressions: Any) -> tuple[Any, ...]:
    """Return one column for each field of the dataclass `row`: the given expression or the column of this name."""
    names = [each.name for each in fields(row) if each.default is MISSING and each.default_factory is MISSING]
    return tuple(expressions[name] if name in expressions else getattr(table, name) for name in names)


def paginate(
    keys: Any, rows: Any, order: Sequence[Any], page: Page, make: Callable[..., Row], total: int | None = None
) -> Listing[Row]:
    """Return one page of a list. Of the rows before the page, only the keys are read.

    The query `keys` selects the key of each row of the list, the query `rows` its columns; `order` sorts both. `make`
    builds a row from its columns. `total` is the length of the list; if it is None, the rows are counted.
    """
    count = keys.select(fn.COUNT(SQL("*"))).scalar() if total is None else total
    if page.offset >= count:
        return Listing([], count, page)
    (key,) = keys.selected_columns
    shown = keys.order_by(*order).limit(page.size).offset(page.offset)
    tuples = rows.where(key.in_(shown)).order_by(*order).tuples()
    return Listing([make(*values) for values in tuples.iterator()], count, page)
