"""Return query results page by page. Every sort order ends with the id, so that pages neither repeat nor skip rows."""

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
    """Return a query column for each required field of dataclass `row`. `expressions` replace columns of `table`."""
    names = [each.name for each in fields(row) if each.default is MISSING and each.default_factory is MISSING]
    return tuple(expressions[name] if name in expressions else getattr(table, name) for name in names)


def paginate(
    keys: Any, rows: Any, order: Sequence[Any], page: Page, make: Callable[..., Row], total: int | None = None
) -> Listing[Row]:
    """Return one page of a query: its rows, each built by calling `make` with the columns, and the number of all rows.

    `keys` selects the id of every row, `rows` the columns. `order` sorts both. `total` is counted if it is None.
    """
    count = keys.select(fn.COUNT(SQL("*"))).scalar() if total is None else total
    if page.offset >= count:
        return Listing([], count, page)
    (key,) = keys.selected_columns
    shown = keys.order_by(*order).limit(page.size).offset(page.offset)  # rows before the page: only ids are read
    tuples = rows.where(key.in_(shown)).order_by(*order).tuples()
    return Listing([make(*values) for values in tuples.iterator()], count, page)
