"""Pagination of query results. Every sort order ends with the id, so that no row appears twice or is skipped."""

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
    """A requested page: the page number, counted from 1, and the number of rows per page."""

    number: int = 1
    size: int = 20

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    rows: list[Row]
    total: int
    page: Page


def columns(row: type[Any], table: type[Model], **expressions: Any) -> tuple[Any, ...]:
    """Return a query column for each required field of `row`, a dataclass: from `expressions`, or else from `table`."""
    names = [each.name for each in fields(row) if each.default is MISSING and each.default_factory is MISSING]
    return tuple(expressions[name] if name in expressions else getattr(table, name) for name in names)


def paginate(
    keys: Any, rows: Any, order: Sequence[Any], page: Page, make: Callable[..., Row], total: int | None = None
) -> Listing[Row]:
    """Return one page of a query: its rows, each built by `make` from the row's columns, and the total.

    `keys` selects the key of every row, `rows` the columns of every row. Only keys are read for rows before the page.
    """
    count = keys.select(fn.COUNT(SQL("*"))).scalar() if total is None else total
    if page.offset >= count:
        return Listing([], count, page)
    (key,) = keys.selected_columns
    shown = keys.order_by(*order).limit(page.size).offset(page.offset)
    tuples = rows.where(key.in_(shown)).order_by(*order).tuples()
    return Listing([make(*values) for values in tuples.iterator()], count, page)
