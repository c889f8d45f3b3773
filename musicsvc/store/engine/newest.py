"""The newest rows that contain a text, for the lists of the command line."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from musicsvc.store.accounts.user_search import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Row = TypeVar("Row")


def newest(
    rows: Iterable[Row], limit: int | None, text: str | None, texts: Callable[[Row], Iterable[str | None]]
) -> Sequence[Row]:
    """Return at most `limit` of the rows, which come newest first, oldest first.

    With `text`, only rows with it in one of their `texts`, compared as in the search for accounts.
    """
    if text:
        wanted = fold(text)
        rows = (row for row in rows if any(wanted in fold(part) for part in texts(row) if part))
    return tuple(islice(rows, limit))[::-1]
