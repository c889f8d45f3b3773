"""The day of the first play of tracks, albums and artists, which pages and reports show if growth would mislead.

The day is read from the counts of blocks and days, so it is also known if the single plays of that day were deleted.
"""

from collections.abc import Collection

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
    done = blocks.progress()
    first = _first(counts.starts(reader.complete_blocks(done), counts.BLOCK32), kind, ids)
    keys = [counts.start(counts.DAY, day) + each for each, day in first.items() if before is None or day < before]
    others = [each for each in ids if each not in first]
    return _first(DAYS_OF_BLOCK, kind, keys) | _first(counts.starts(done.open_days), kind, others)


def _first(periods: Collection[int], kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the first day of the earliest of these periods with plays, by id."""
    found = counts.fetch_rows(FIRST, periods, kind, ids)
    return {subject: counts.first_day(period << counts.REST_BITS) for subject, period in found}
