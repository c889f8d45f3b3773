"""The day of the first play of tracks, albums and artists, which pages and reports show if growth would mislead.

The day is read from the counts of blocks and days, so it is also known if the single plays of that day were deleted.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from musicsvc.store.insights import scopes
from musicsvc.store.insights.scopes import Part
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups import counts, reader
from musicsvc.store.plays.subjects import Subject

SUBJECTS_PER_BATCH = 256
FIRST_DAYS = f"SELECT {counts.SUBJECT}, min({counts.OF_DAY}) FROM {{rows}} GROUP BY {counts.SUBJECT}"  # noqa: S608 - our own names


def instead_of_growth(window: Window, first: int | None) -> int | None:
    """Return the day of the first play if it is to be shown instead of the growth in the window, else None.

    It is shown if it lies after the start of the earlier window, because growth then compares with days on which
    nothing could be played yet.
    """
    before = window.compared_with
    return first if before is not None and first is not None and first > before.first else None


def of_subject(subject: Subject) -> int | None:
    """Return the day of the first play of a track, album or artist, or None without plays."""
    return by_id(subject.kind, [subject.id]).get(subject.id)


def by_id(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the day of the first play of each track, album or artist by id. Ids without plays are absent."""
    found: dict[int, int] = {}
    for days, some in reader.spans(kind, ids):
        found = _first(days, kind, [each for each in some if each not in found]) | found
    return found


def of_parts(parts: Iterable[Part]) -> int | None:
    """Return the day of the first play of the artists and tracks that are added up, or None without plays."""
    first: int | None = None
    for part in parts:
        for batch in scopes.batches(part.ids, SUBJECTS_PER_BATCH) if part.times > 0 else ():
            for days, some in reader.spans(part.kind, batch):
                if days and (first is None or days.start < first):
                    found = _first(days, part.kind, some).values()
                    first = min([*found, *([] if first is None else [first])], default=None)
    return first


def _first(days: range, kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the first of these days with plays by id."""
    return dict(counts.fetch_rows(FIRST_DAYS, counts.starts(days), kind, ids))


def with_dates(kind: int, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield rows that begin with the id of a track, album or artist, each with the date of its first play added."""
    for batch in scopes.batches(rows, SUBJECTS_PER_BATCH):
        found = by_id(kind, [row[0] for row in batch if row[0] is not None])
        for row in batch:
            yield *row, to_date(found[row[0]]).isoformat() if row[0] in found else None
