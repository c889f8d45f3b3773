"""Find wrong two-hour play counts by comparing them with single plays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.clock import isoformat
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import daily
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import day_parts, listeners, monthly
from musicsvc.store.plays.rollups.tables import Key
from musicsvc.store.plays.subjects import KINDS

NOUNS = {kind: noun for noun, kind in KINDS.items()}
PARTS_A_MONTH = monthly.DAYS * day_parts.PER_DAY
COUNTED = f"""
    SELECT kind, subject, part / {PARTS_A_MONTH} AS month FROM play_part
    UNION SELECT {daily.KIND}, {daily.SUBJECT}, {daily.DAY} / {monthly.DAYS} FROM play_day
    WHERE plays >= {day_parts.LEAST_PLAYS}
    ORDER BY month, kind, subject
"""  # noqa: S608 - constants
STORED = """
    SELECT kind, subject, part, plays, listeners FROM play_part
    WHERE kind = ? AND subject = ? AND part >= ? AND part < ?
"""
NONE = 0, b""


class Month(NamedTuple):
    """A track, album or artist in a month of 32 days."""

    kind: int
    subject: int
    month: int


@dataclass(slots=True)
class PartsComparison:
    """Stored and recomputed two-hour counts: (number of plays, packed listener ids) by (kind, id, part)."""

    month: Month
    stored: dict[Key, tuple[int, bytes]]
    expected: dict[Key, tuple[int, bytes]]
    plays = 0

    @property
    def rows(self) -> int:
        """The number of rows that were compared."""
        return len(self.expected.keys() | self.stored.keys())

    def differing(self) -> list[Key]:
        """Return the sorted keys of all rows that are wrong, missing or superfluous."""
        keys = self.stored.keys() | self.expected.keys()
        return sorted(key for key in keys if not self._same(key))

    def _same(self, key: Key) -> bool:
        if key not in self.stored or key not in self.expected:
            return False
        (plays, people), (expected, heard) = self.stored[key], self.expected[key]
        return plays == expected and listeners.union([people]) == listeners.union([heard])

    def sizes(self, key: Key) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (plays, listeners) of the stored row, then of the recomputed row. A missing row has (0, 0)."""
        stored, expected = self.stored.get(key, NONE), self.expected.get(key, NONE)
        return (stored[0], listeners.count(stored[1])), (expected[0], listeners.count(expected[1]))

    def name(self, key: Key) -> str:
        """Return the row's name for people, such as `track 7, the two hours from 2026-01-31T04:00:00Z`."""
        kind, subject, part = key
        return f"{NOUNS[kind]} {subject}, the two hours from {isoformat(part * day_parts.SLOTS * SLOT)}"

    def repair(self, keys: Sequence[Key]) -> None:
        """Recount all two-hour counts of the days that contain the wrong rows, given by their keys."""
        kind, subject, _ = self.month
        day_parts.rebuild({kind: {subject: {part // day_parts.PER_DAY for _, _, part in keys}}})


def months() -> list[Month]:
    """Return the months of tracks, albums and artists that have two-hour counts, or should have two-hour counts."""
    return [Month(*row) for row in fetch(COUNTED)]


def compare_parts(month: Month) -> PartsComparison:
    """Compare the two-hour counts in a month with single plays. The daily counts must be correct already."""
    kind, subject, number = month
    parts = number * PARTS_A_MONTH, (number + 1) * PARTS_A_MONTH
    stored = {(a, b, c): (plays, people) for a, b, c, plays, people in fetch(STORED, kind, subject, *parts)}
    expected: dict[Key, tuple[int, bytes]] = {}
    kept_from = monthly.watermark().kept_from
    for day in monthly.days_of(number):
        if day >= kept_from and day_parts.popular(day, kind, [subject]):
            expected |= day_parts.count(day, kind, [subject])
    return PartsComparison(month, stored, expected)
