"""Verify and repair counts: of days by single plays, of blocks and of all time by days, likes and reposts by day."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import counting, ranks
from musicsvc.store.plays.periods import SLOTS_PER_DAY, to_date
from musicsvc.store.plays.rollups import blocks, counts, histograms, listeners, recount
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY, Counts
from musicsvc.store.plays.subjects import NOUNS, TRACK

SHOWN = 100
KEYS_PER_BATCH = 2000
SPAN = f"""
    SELECT min(day), max(day) FROM (
        SELECT min(slot) / {SLOTS_PER_DAY} AS day FROM play WHERE slot >= ?
        UNION ALL SELECT max(slot) / {SLOTS_PER_DAY} FROM play
        UNION ALL SELECT (key >> {counts.REST_BITS}) - {counts.ORIGIN} FROM (
            SELECT min(key) AS key FROM play_count WHERE {counts.IN_SPAN}
            UNION ALL SELECT max(key) FROM play_count WHERE {counts.IN_SPAN}
        ) AS keys
    ) AS days
"""  # noqa: S608 - constants
STORED = f"SELECT key, {counts.COLUMNS} FROM play_count WHERE {counts.IN_SPAN}"  # noqa: S608 - constants
EIGHTS = f"SELECT DISTINCT {counts.PERIOD} FROM play_count WHERE {counts.IN_SPAN} ORDER BY 1"  # noqa: S608 - constants
# Only the totals that differ, as there is one for each track.
OF_TRACKS = f"key < {blocks.ABOVE_DAYS} AND {counts.KIND} = {TRACK}"
WRONG_TOTALS = f"""
    SELECT d.track_id, p.plays, d.plays FROM (
        SELECT {counts.SUBJECT} AS track_id, CAST(sum(plays) AS BIGINT) AS plays
        FROM play_count WHERE {OF_TRACKS} GROUP BY 1
    ) AS d LEFT JOIN track_plays p ON p.track_id = d.track_id WHERE p.plays IS DISTINCT FROM d.plays
    UNION ALL SELECT track_id, plays, NULL FROM track_plays
    WHERE track_id NOT IN (SELECT {counts.SUBJECT} FROM play_count WHERE {OF_TRACKS})
    ORDER BY 1
"""  # noqa: S608 - our own names
NONE: Counts = (0, 0, b"", b"")


class Difference(NamedTuple):
    """A wrong count: a description of its row, then (plays, listeners) as stored and as recomputed.

    If the description says likes and reposts, the pairs are (likes, reposts).
    """

    row: str
    stored: tuple[int, int]
    counted: tuple[int, int]


class Comparison(NamedTuple):
    """The number of rows that were compared, the wrong ones, their repair, and the number of single plays read."""

    rows: int
    wrong: Sequence[Difference]
    repair: Callable[[], None]
    plays: int = 0


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
    report = VerifyReport(kept_from=store.read(lambda: blocks.progress().kept_from).result())
    first, end = store.read(partial(_span, report.kept_from)).result()
    day = first
    while day < end:
        report.plays += _verify(store, partial(compare_day, day), report, check=check)
        report.days += 1
        on_progress(day + 1 - first, end - first)
        day = max(day + 1, store.read(partial(_span, day + 1)).result()[0])
    for first, end in _batches(store):
        _verify(store, partial(compare_blocks, first, end), report, check=check)
    for compare in (compare_totals, compare_engagement):
        _verify(store, compare, report, check=check)
    return report


def _span(day: int) -> tuple[int, int]:
    """Return the range of days with plays on or after `day`, as (first, last + 1). Without plays: (`day`, `day`)."""
    keys = counts.start(DAY, day), blocks.ABOVE_DAYS
    ((first, last),) = fetch(SPAN, day * SLOTS_PER_DAY, *keys, *keys)
    return (day, day) if last is None or last < day else (int(first), int(last) + 1)


def _batches(store: Store) -> Iterator[tuple[int, int]]:
    """Yield ranges of keys of blocks, first and end, that together have all rows that are stored or should be."""
    done = store.read(blocks.progress).result()
    for day in (*done.blocks, done.open_day):  # the last is perhaps made in part
        key, last = counts.start(BLOCK32, day), counts.start(BLOCK32, day + blocks.LENGTH32)
        while key < last:
            end = store.read(partial(blocks.batch_end, key, KEYS_PER_BATCH)).result()
            yield key, end
            key = end
    for (period,) in store.read(
        partial(fetch, EIGHTS, blocks.ABOVE_DAYS, counts.start(BLOCK32, -counts.ORIGIN))
    ).result():
        yield period << counts.REST_BITS, period + 1 << counts.REST_BITS


def _verify(store: Store, compare: Callable[[], Comparison], report: VerifyReport, *, check: bool) -> int:
    """Call `compare`, add its result to `report`, and repair unless `check`. Return the number of plays read."""
    found = store.read(compare).result()
    if found.wrong:  # perhaps only because plays are not counted yet
        found = store.write(partial(counting.alone, compare)).result()
    report.rows += found.rows
    report.differing += len(found.wrong)
    report.differences += found.wrong[: SHOWN - len(report.differences)]
    if found.wrong and not check:
        store.write(partial(_repair, compare)).result()
    return found.plays


def _repair(compare: Callable[[], Comparison]) -> None:
    counting.lock()
    compare().repair()
    if compare().wrong:
        raise RuntimeError("Play counts still differ from their plays after the repair.")


def compare_day(day: int) -> Comparison:
    """Compare the stored play counts of a day (days since 1970-01-01) with the single plays of that day."""
    expected, plays = recount.of_day(day)
    stored = _stored(*counts.span(range(day, day + 1)))
    return _compare(stored, expected, plays)


def compare_blocks(first: int, end: int) -> Comparison:
    """Compare the counts of blocks with keys from `first` to `end` - 1 with those of their days.

    Blocks of 8 days are compared if they are stored: those that are missing are not errors.
    """
    stored = _stored(first, end)
    if first >> counts.LEVEL_SHIFT == BLOCK8:
        return _compare(stored, recount.recount(BLOCK8, stored))
    return _compare(stored, blocks.between(first, min(end, max(first, blocks.progress().block32))))


def _stored(first: int, end: int) -> dict[int, Counts]:
    return {key: (plays, own, people, packed) for key, plays, own, people, packed in fetch(STORED, first, end)}


def _compare(stored: Mapping[int, Counts], expected: Mapping[int, Counts], plays: int = 0) -> Comparison:
    keys = stored.keys() | expected.keys()
    wrong = sorted(key for key in keys if not _same(stored.get(key), expected.get(key)))
    differences = [_difference(key, stored.get(key, NONE), expected.get(key, NONE)) for key in wrong]
    return Comparison(len(keys), differences, partial(counts.replace, wrong, expected), plays)


def _same(one: Counts | None, other: Counts | None) -> bool:
    if one is None or other is None or one[:2] != other[:2]:
        return False
    if one[2] != other[2] and listeners.union([one[2]]) != listeners.union([other[2]]):
        return False
    return one[3] == other[3] or histograms.unpack([one[3]]) == histograms.unpack([other[3]])


def _difference(key: int, stored: Counts, expected: Counts) -> Difference:
    level, day, kind, subject = counts.parts(key)
    when = f"{to_date(day)}" if level == DAY else f"the {counts.DAYS[level]} days from {to_date(day)}"
    sizes = [(each[0], listeners.count(each[2])) for each in (stored, expected)]
    what = ""
    if sizes[0] == sizes[1]:
        what = ": hours and completion" if stored[1] == expected[1] else ": own plays"
    return Difference(f"{NOUNS.get(kind, kind)} {subject}, {when}{what}", *sizes)


def compare_totals() -> Comparison:
    """Compare the all-time plays of tracks with the counts of their days. Correct ones are not counted as rows."""
    rows = fetch(WRONG_TOTALS)
    wrong = [Difference(f"track {track}, all time", (was or 0, 0), (now or 0, 0)) for track, was, now in rows]
    return Comparison(len(wrong), wrong, partial(ranks.replace, {track: now for track, _, now in rows}))


def compare_engagement() -> Comparison:
    """Compare the daily numbers of likes and reposts with the likes and reposts. Correct ones are not counted."""
    found = sorted(engagement_days.wrong())
    wrong = [
        Difference(
            f"{NOUNS[each.kind]} {each.subject}, {to_date(each.day)}: likes and reposts", each.stored, each.counted
        )
        for each in found
    ]
    return Comparison(len(wrong), wrong, partial(_recount_engagement, {(each.kind, each.subject) for each in found}))


def _recount_engagement(subjects: Collection[tuple[int, int]]) -> None:
    engagement_days.lock()
    engagement_days.rebuild(subjects)
