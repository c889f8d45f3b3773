"""Pages: every order ends in the id, so that no row is shown twice or left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from peewee import SQL, fn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page:
    """Which page is asked for: `number` from 1, `size` rows."""

    number: int = 1
    size: int = 20

    @property
    def offset(self) -> int:
        """How many rows come before it."""
        return (self.number - 1) * self.size


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """The rows of one page, and how many there are on all pages together."""

    rows: list[Row]
    total: int
    page: Page


def paginate(
    keys: Any, rows: Any, order: Sequence[Any], page: Page, make: Callable[..., Row], total: int | None = None
) -> Listing[Row]:
    """Return one page: the keys of its rows first, so that skipped rows cost no column, join or count.

    `keys` selects the key of each row of the list, `rows` the columns of a row; `order` sorts both. `make` makes a row
    of each tuple; `total` is counted where it is not given.
    """
    count = keys.select(fn.COUNT(SQL("*"))).scalar() if total is None else total
    if page.offset >= count:
        return Listing([], count, page)
    (key,) = keys.selected_columns
    shown = keys.order_by(*order).limit(page.size).offset(page.offset)
    tuples = rows.where(key.in_(shown)).order_by(*order).tuples()
    return Listing([make(*values) for values in tuples.iterator()], count, page)
