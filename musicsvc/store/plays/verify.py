"""Verify and repair counts: daily counts against single plays, likes and reposts; other counts against daily counts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import daily
from musicsvc.store.plays.expected import parts
from musicsvc.store.plays.expected.counts import (
    Comparison,
    EngagementComparison,
    compare_day,
    compare_engagement,
    compare_month,
    compare_totals,
    compare_week,
)
from musicsvc.store.plays.expected.parts import PartsComparison
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.reported import own_counts
from musicsvc.store.plays.reported.own_counts import OwnComparison
from musicsvc.store.plays.rollups import monthly, tables
from musicsvc.store.plays.subjects import KINDS

Compare: TypeAlias = "Callable[[], Comparison | PartsComparison | EngagementComparison | OwnComparison]"
SHOWN = 100
SUBJECTS_PER_BATCH = 2000
SPAN = f"""
    SELECT min(day), max(day) FROM (
        SELECT min(slot) / {SLOTS_PER_DAY} AS day FROM play WHERE slot >= ?
        UNION ALL SELECT max(slot) / {SLOTS_PER_DAY} FROM play
        UNION ALL SELECT {daily.FIRST_SINCE.format(since="?")} UNION ALL SELECT {daily.LAST}
    ) AS days
"""  # noqa: S608 - a constant
WEEKS = "SELECT DISTINCT stretch FROM play_stretch ORDER BY stretch"


class Difference(NamedTuple):
    """A wrong count: a description of its row, then (plays, listeners) as stored and as recomputed.

    If the description says likes and reposts, the pairs are (likes, reposts).
    """

    row: str
    stored: tuple[int, int]
    counted: tuple[int, int]


@dataclass(slots=True)
class VerifyReport:
    """Numbers of verified days, plays and rows, and up to 100 `differences`. Plays before `kept_from` were deleted."""

    kept_from: int = 0
    days: int = 0
    plays: int = 0
    rows: int = 0
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)


def run(store: Store, *, check: bool, on_progress: Callable[[int, int], None]) -> VerifyReport:
    """Compare all stored play counts with the single plays. Repair wrong counts, unless `check` is set.

    `on_progress` is called with the number of verified days and the number of all days.
    """
    report = VerifyReport(kept_from=store.read(lambda: monthly.watermark().kept_from).result())
    first, end = store.read(partial(_span, report.kept_from)).result()
    day = first
    while day < end:
        report.plays += _verify(store, partial(compare_day, day), report, check=check)
        report.days += 1
        on_progress(day + 1 - first, end - first)
        day = max(day + 1, store.read(partial(_span, day + 1)).result()[0])
    for compare in _from_days(store):
        _verify(store, compare, report, check=check)
    return report


def _span(day: int) -> tuple[int, int]:
    """Return the range of days with plays on or after `day`, as (first, last + 1). Without plays: (`day`, `day`)."""
    ((first, last),) = fetch(SPAN, day * SLOTS_PER_DAY, day)
    return (day, day) if last is None or last < day else (int(first), int(last) + 1)


def _months() -> range:
    """Return the numbers of the months from the first with plays to the one in progress, both included."""
    return range(_span(0)[0] // monthly.DAYS, monthly.watermark().month + 1)


def _from_days(store: Store) -> Iterator[Compare]:
    """Yield functions that each compare some counts with the rows that they are computed from.

    They compare monthly, weekly and all-time counts with daily counts, which must be verified before, two-hour counts
    with single plays, and daily likes and reposts with single ones.
    """
    for month in store.read(_months).result():
        for kind in KINDS.values():
            first: int | None = 0
            while first is not None:
                end = store.read(partial(monthly.batch_end, month, kind, first, SUBJECTS_PER_BATCH)).result()
                yield partial(compare_month, month, kind, first, end)
                first = end
    for (week,) in store.read(partial(fetch, WEEKS)).result():
        yield partial(compare_week, week)
    for each in store.read(parts.months).result():
        yield partial(parts.compare_parts, each)
    yield own_counts.compare
    yield compare_totals
    yield compare_engagement


def _verify(store: Store, compare: Compare, report: VerifyReport, *, check: bool) -> int:
    """Call `compare`, add its result to `report`, and repair unless `check`. Return the number of plays read."""
    found = store.read(compare).result()
    wrong = found.differing()
    report.rows += found.rows
    report.differing += len(wrong)
    room = SHOWN - len(report.differences)
    report.differences += [Difference(found.name(key), *found.sizes(key)) for key in wrong[:room]]
    if wrong and not check:
        store.write(partial(_repair, compare)).result()
    return found.plays


def _repair(compare: Compare) -> None:
    tables.lock()
    found = compare()
    found.repair(found.differing())
    if compare().differing():
        raise RuntimeError("Rollups still differ from their plays after the repair.")
