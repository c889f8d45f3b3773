"""Histograms of plays by hour of the week and by completion (the percentage of the track played), packed into bytes.

A play has two bytes: its hour of the week (0 is Monday 00:00 UTC), and its completion code. The code is the completion
in whole percent, plus 101 if the track was skipped; 151 if the play's duration is unknown, 152 if only the track's
length is unknown. A small histogram is a sequence of such pairs. In a large one, the numbers of plays by hour and by
completion code precede the pairs. Appending packed plays to a histogram adds the plays to it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from operator import add
from struct import Struct
from typing import NamedTuple

from musicsvc.store.plays.periods import SLOTS_PER_DAY

WIDTH = 2  # bytes of a play
HOURS = 168
SLOTS_PER_HOUR = SLOTS_PER_DAY // 24
FIRST_HOUR = 72  # 1970-01-01 was a Thursday
PERCENT = 101  # values of completion, 0 to 100
SKIP_BEFORE_MS = 30_000
WITHOUT_DURATION = PERCENT + 50  # a skip ends before half of the track, so its completion is below 50
WITHOUT_LENGTH = WITHOUT_DURATION + 1
COMPLETIONS = WITHOUT_LENGTH + 2  # makes SIZE even
SIZE = HOURS + COMPLETIONS
NUMBERS = {1 << power: Struct(f"<{SIZE}{code}") for power, code in enumerate("BHIQ")}  # by bytes of a number
NARROW = {1: "B", 2: "H"}  # codes of arrays, by bytes of a number
LARGE = 1 + SIZE  # bytes of the smallest histogram with numbers


class Histogram(NamedTuple):
    """Numbers of plays by hour of the week, and of `completed` (not skipped) and `skipped` plays by percentage.

    `without_length` is the number of plays with a known duration of tracks with unknown length.
    """

    hours: list[int]
    completed: list[int]
    skipped: list[int]
    without_length: int

    def plus(self, other: Histogram, times: int) -> Histogram:
        """Return the sum of this histogram and `times` the `other` one. `times` may be negative, to subtract it."""

        def added(left: list[int], right: list[int]) -> list[int]:
            return [one + times * another for one, another in zip(left, right, strict=True)]

        return Histogram(
            added(self.hours, other.hours),
            added(self.completed, other.completed),
            added(self.skipped, other.skipped),
            self.without_length + times * other.without_length,
        )

    @property
    def completions(self) -> list[int]:
        """The number of plays for each completion in percent. Plays with unknown completion are left out."""
        return [*map(add, self.completed, self.skipped), *self.completed[len(self.skipped) :]]


def completion(duration_ms: int | None, length: int) -> int:
    """Return the completion code of a play. `length`: the track's in milliseconds, or 0."""
    if duration_ms is None:
        return WITHOUT_DURATION
    if not length:
        return WITHOUT_LENGTH
    if duration_ms >= length:
        return 100
    percent = duration_ms * 100 // length
    return percent + PERCENT if duration_ms < SKIP_BEFORE_MS and 2 * duration_ms < length else percent


def merge(histograms: Iterable[bytes]) -> bytes:
    """Add up packed histograms, and return the sum as a packed histogram."""
    some = list(histograms)
    joined = b"".join(some)
    if len(joined) < LARGE:
        return joined
    if len(some) == 1 and (merged := _merge_in_place(joined)) is not None:  # takes a third of the time
        return merged
    counts = _count(some)
    most = max(counts)
    width = next(width for width in NUMBERS if most < 1 << 8 * width)
    # Their width precedes the numbers. The whole has an odd length, which a sequence of pairs never has.
    return bytes((width,)) + NUMBERS[width].pack(*counts)


def _merge_in_place(packed: bytes) -> bytes | None:
    """Merge one large packed histogram whose numbers keep their width. Return None if they do not, or are wide."""
    width = packed[0]
    if not len(packed) & 1 or width not in NARROW:
        return None
    end = 1 + width * SIZE
    counts = array(NARROW[width], packed[1:end])
    if sys.byteorder == "big":
        counts.byteswap()
    try:
        for hour in packed[end::WIDTH]:
            counts[hour] += 1
        for value in packed[end + 1 :: WIDTH]:
            counts[HOURS + value] += 1
    except OverflowError:
        return None
    if sys.byteorder == "big":
        counts.byteswap()
    return packed[:1] + counts.tobytes()


def unpack(histograms: Iterable[bytes]) -> Histogram:
    """Add up packed histograms, and return the sum as a `Histogram`."""
    counts = _count(histograms)
    hours, completions = counts[:HOURS], counts[HOURS:]
    completed, skipped = completions[:PERCENT], completions[PERCENT:WITHOUT_DURATION]
    return Histogram(hours, completed, skipped, completions[WITHOUT_LENGTH])


def _count(histograms: Iterable[bytes]) -> list[int]:
    """Return the sum of packed histograms: plays by hour of the week, followed by plays by completion code."""
    counts: list[int] = []
    pairs = bytearray()
    for packed in histograms:
        if not len(packed) & 1:
            pairs += packed
            continue
        layout = NUMBERS[packed[0]]
        numbers = layout.unpack_from(packed, 1)
        counts = list(map(add, counts, numbers)) if counts else list(numbers)
        pairs += packed[1 + layout.size :]
    counts = counts or [0] * SIZE
    for hour in pairs[::WIDTH]:
        counts[hour] += 1
    for value in pairs[1::WIDTH]:
        counts[HOURS + value] += 1
    return counts
