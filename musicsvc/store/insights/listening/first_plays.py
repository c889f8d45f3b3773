"""The day of the first play of tracks, albums and artists, which pages and reports show if growth would mislead.

The day is read from the counts of blocks and days, so it is also known if the single plays of that day were deleted.
"""

from collections.abc import Collection
from typing import Any

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import blocks, counts, reader

FIRST = f"SELECT {counts.SUBJECT}, min({counts.PERIOD}) FROM {{rows}} GROUP BY {counts.SUBJECT}"  # noqa: S608 - our own names
DAYS_OF_BLOCK = [day << counts.REST_BITS for day in range(blocks.LENGTH32)]  # what they add to the key of its first day


def instead_of_growth(window: Window, first: int | None) -> int | None:
    """Return the day of the first play if it is to be shown instead of the growth in the window, else None.

    It is shown if it lies after the start of the earlier window, because growth then compares with days on which
    nothing could be played yet.
    """
    before = window.compared_with
    return first if before is not None and first is not None and first > before.first else None


def by_id(kind: int, ids: Collection[int], before: int | None = None) -> dict[int, int]:
    """Return the day of the first play of each track, album or artist by id. Ids without plays are absent.

    `before`: ids without a play before this day may be absent too.
    """
    if not ids:
        return {}
    done = blocks.progress()
    whole, days = counts.starts(reader.complete_blocks(done), counts.BLOCK32), counts.starts(done.open_days)
    first = _first(counts.dense_rows(whole, kind, sorted(ids))) if whole else {}  # of ids between them too
    wanted = {each: first[each] for each in ids if each in first}
    keys = [counts.start(counts.DAY, day) + each for each, day in wanted.items() if before is None or day < before]
    others = [each for each in ids if each not in first]
    found = _first(counts.rows(DAYS_OF_BLOCK, kind, keys)) if keys else {}
    return found | (_first(counts.rows(days, kind, others)) if others and days else {})


def _first(rows: tuple[str, list[Any]]) -> dict[int, int]:
    """Return the first day of the earliest period with plays by id. `rows`: SQL for rows, and its values."""
    source, values = rows
    found = fetch(FIRST.format(rows=source), *values)
    return {subject: counts.first_day(period << counts.REST_BITS) for subject, period in found}
