"""Everything that is kept up from plays, counted anew from the plays themselves and held against it, piece by piece.

Days are counted from the plays, then blocks, stretches and the tracks' totals from the days.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.expected import Held, of_block, of_day, of_stretch, of_totals
from musicsvc.store.plays.rollups import daily, monthly, subjects
from musicsvc.store.plays.rollups.subjects import SLOTS_A_DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from musicsvc.store.engine.store import Store

Piece: TypeAlias = "Callable[[], Held]"
SHOWN = 100
SUBJECTS_A_PIECE = 2000
SPAN = """
    SELECT min(day), max(day) FROM (
        SELECT min(slot) / 2880 AS day FROM play WHERE slot >= ? UNION ALL SELECT max(slot) / 2880 FROM play
        UNION ALL SELECT min(day) FROM play_day WHERE day >= ? UNION ALL SELECT max(day) FROM play_day
    ) AS days
"""
STRETCHES = "SELECT DISTINCT stretch FROM play_stretch ORDER BY stretch"


class Difference(NamedTuple):
    """A row that says something else than the plays; (plays, listeners) as they are stored and as they were counted."""

    row: str
    stored: tuple[int, int]
    counted: tuple[int, int]


@dataclass(slots=True)
class Report:
    """What was counted. `differences` are the first hundred; plays before the day `kept_from` are there no more."""

    kept_from: int = 0
    days: int = 0
    plays: int = 0
    rows: int = 0
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)


def run(store: Store, *, check: bool, told: Callable[[int, int], None]) -> Report:
    """Count everything anew; unless `check`, what differs is put right. `told` hears how many days of how many are."""
    report = Report(kept_from=store.read(lambda: monthly.mark().kept_from).result())
    first, end = store.read(partial(_span, report.kept_from)).result()
    day = first
    while day < end:
        report.plays += _hold(store, partial(of_day, day), report, check=check)
        report.days += 1
        told(day + 1 - first, end - first)
        day = max(day + 1, store.read(partial(_span, day + 1)).result()[0])
    for piece in _others(store):
        _hold(store, piece, report, check=check)
    return report


def _span(day: int) -> tuple[int, int]:
    """The first day that has anything from this one on, and the day after the last."""
    ((first, last),) = fetch(SPAN, day * SLOTS_A_DAY, day)
    return (day, day) if last is None or last < day else (int(first), int(last) + 1)


def _blocks() -> range:
    """The blocks that are made, or being made."""
    return range(_span(0)[0] // monthly.DAYS, monthly.mark().block + 1)


def _others(store: Store) -> Iterator[Piece]:
    """What is made of days, once these are right."""
    for block in store.read(_blocks).result():
        for kind in (subjects.TRACK, subjects.ALBUM, subjects.ARTIST):
            first: int | None = 0
            while first is not None:
                end = store.read(partial(monthly.bound, block, kind, first, SUBJECTS_A_PIECE)).result()
                yield partial(of_block, block, kind, first, end)
                first = end
    for (stretch,) in store.read(partial(fetch, STRETCHES)).result():
        yield partial(of_stretch, stretch)
    yield of_totals


def _hold(store: Store, piece: Piece, report: Report, *, check: bool) -> int:
    """Hold the piece against what is stored, and put it right; how many plays were read for it."""
    held = store.read(piece).result()
    wrong = held.differing()
    report.rows += len(held.counted.keys() | held.stored.keys())
    report.differing += len(wrong)
    room = SHOWN - len(report.differences)
    report.differences += [Difference(held.name(key), *held.sizes(key)) for key in wrong[:room]]
    if wrong and not check:
        store.write(partial(_mend, piece)).result()
    return held.plays


def _mend(piece: Piece) -> None:
    """Write what was counted, and prove it equal."""
    daily.lock()
    held = piece()
    held.write(held.differing())
    if piece().differing():
        raise RuntimeError("what was written is not what was counted")
