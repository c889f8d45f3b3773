"""Lists of pages that show the newest rows first, with a link to older ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHOWN = 50  # rows of a page
WANTED = SHOWN + 1  # rows to ask the store for: one more tells that there are older ones


class Newest(NamedTuple):
    """The rows of a page, newest first. `before`: what the next page's rows are older than, None on the last page."""

    rows: Sequence[Any]
    before: int | None


def by_id(found: Sequence[Any], get_id: Callable[[Any], int]) -> Newest:
    """Return the first SHOWN of at most WANTED rows, newest first. The next page begins after the last id."""
    shown = found[:SHOWN]
    return Newest(shown, get_id(shown[-1]) if len(found) > SHOWN else None)


def by_time(found: Sequence[Any]) -> Newest:
    """Return the first SHOWN of at most WANTED rows, newest first. The next page begins after the last time.

    Rows of the same time stay together, so that no row is left out between two pages.
    """
    if len(found) <= SHOWN:
        return Newest(found, None)
    older = found[-1].at
    shown = [row for row in found if row.at > older] or found
    return Newest(shown, shown[-1].at if shown is found else older + 1)
