"""Pagination of lists on pages: the newest rows first, with a link to older rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SHOWN = 50  # rows of a page
WANTED = SHOWN + 1  # rows to ask the store for: one more tells that there are older ones


class Newest(NamedTuple):
    """One page of rows, newest first. `before`: an id or time; the next page has older rows. None on the last page."""

    rows: Sequence[Any]
    before: int | None


def by_id(found: Sequence[Any], get_id: Callable[[Any], int]) -> Newest:
    """Return a page with the first SHOWN of the rows `found`, newest first. The next page begins after the last id."""
    shown = found[:SHOWN]
    return Newest(shown, get_id(shown[-1]) if len(found) > SHOWN else None)


def by_time(found: Sequence[Any]) -> Newest:
    """Return a page with the first SHOWN of the rows `found`, newest first. The next page begins at an older time.

    Rows with the same time are on the same page, so that none of them is skipped between two pages.
    """
    if len(found) <= SHOWN:
        return Newest(found, None)
    older = found[-1].at
    shown = [row for row in found if row.at > older] or found
    return Newest(shown, shown[-1].at if shown is found else older + 1)
