"""Rows as they ought to be, counted from what they are made of, beside those that are stored."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.rollups import daily, listeners, monthly, weekly
from musicsvc.store.plays.rollups import subjects as rollups
from musicsvc.store.plays.rollups.subjects import KINDS, SLOTS_A_DAY, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from musicsvc.store.plays.rollups.daily import Key, Table

SLOTS_A_FETCH = 120  # an hour
LARGE = 4096  # bytes of a set that is being gathered
NOUNS = {kind: noun for noun, kind in KINDS.items()}
PLAYS = "SELECT track_id, listener_id FROM play WHERE slot >= ? AND slot < ?"
DAY = "SELECT day, kind, subject, plays, listeners FROM play_day WHERE day = ?"
BLOCK = """
    SELECT kind, subject, block, plays, listeners FROM play_block
    WHERE kind = ? AND subject BETWEEN ? AND ? AND block = ?
"""
STRETCH = "SELECT kind, subject, stretch, plays, listeners FROM play_stretch WHERE stretch = ?"
OF_STRETCH = """
    SELECT d.kind, d.subject, d.plays, d.listeners FROM play_stretch s
    JOIN play_day d ON d.day IN ({days}) AND d.kind = s.kind AND d.subject = s.subject WHERE s.stretch = ?
"""
TOTALS = daily.Table("track_plays", ("track_id", "", ""), ())
# Those that differ alone, for there are as many as tracks.
OF_TOTALS = """
    SELECT d.subject, p.plays, d.plays
    FROM (SELECT subject, CAST(sum(plays) AS BIGINT) AS plays FROM play_day WHERE kind = 1 GROUP BY subject) AS d
    LEFT JOIN track_plays p ON p.track_id = d.subject WHERE p.plays IS DISTINCT FROM d.plays
    UNION ALL SELECT track_id, plays, NULL FROM track_plays
    WHERE track_id NOT IN (SELECT subject FROM play_day WHERE kind = 1)
"""
Tally = tuple[int, bytes]
NONE: Tally = (0, b"")


@dataclass(slots=True)
class Held:
    """A piece of a table, by key: what is stored and what was counted, from so many single plays."""

    table: Table
    stored: dict[Key, Tally]
    counted: dict[Key, Tally]
    plays: int = 0

    def differing(self) -> list[Key]:
        """The keys of the rows that differ, those that are missing and those that ought not to be among them."""
        keys = self.stored.keys() | self.counted.keys()
        return sorted(key for key in keys if not _same(self.stored.get(key), self.counted.get(key)))

    def sizes(self, key: Key) -> tuple[tuple[int, int], tuple[int, int]]:
        """Plays and listeners of the row as it is stored and as it was counted."""
        stored, counted = self.stored.get(key, NONE), self.counted.get(key, NONE)
        return (stored[0], listeners.count(stored[1])), (counted[0], listeners.count(counted[1]))

    def name(self, key: Key) -> str:
        """What the row is of."""
        if self.table is TOTALS:
            return f"track {key[0]}, all time"
        if self.table is daily.DAYS:
            return f"{NOUNS[key[1]]} {key[2]}, {to_date(key[0])}"
        days = monthly.DAYS if self.table is daily.BLOCKS else weekly.DAYS
        return f"{NOUNS[key[0]]} {key[1]}, the {days} days from {to_date(key[2] * days)}"

    def write(self, keys: Sequence[Key]) -> None:
        """Store what was counted for these keys."""
        wrong = [key for key in keys if key in self.stored]
        right = [(*key, *self.counted[key]) for key in keys if key in self.counted]
        if self.table is TOTALS:
            run_many("DELETE FROM track_plays WHERE track_id = ?", [(track,) for track, _, _ in wrong])
            rows = [(track, plays) for track, _, _, plays, _ in right]
            run_many("INSERT INTO track_plays (track_id, plays) VALUES (?, ?)", rows)
            return
        daily.delete(self.table, wrong)
        daily.put(self.table, right)


def _same(one: Tally | None, other: Tally | None) -> bool:
    if one is None or other is None or one[0] != other[0]:
        return False
    return one[1] == other[1] or listeners.union([one[1]]) == listeners.union([other[1]])


def of_day(day: int) -> Held:
    """The rows of a day, counted from its plays."""
    read = 0
    tallied: dict[Key, Tally] = {}
    subjects: dict[int, list[tuple[int, int]]] = {}
    for start in range(day * SLOTS_A_DAY, (day + 1) * SLOTS_A_DAY, SLOTS_A_FETCH):
        heard: dict[int, bytes] = defaultdict(bytes)
        for track, listener in fetch(PLAYS, start, start + SLOTS_A_FETCH):
            heard[track] += listeners.pack([listener])
            read += 1
        if fresh := heard.keys() - subjects.keys():
            subjects |= rollups.subjects_of(fresh)
        for track, packed in heard.items():
            for kind, subject in subjects.get(track, [(TRACK, track)]):
                _tally(tallied, (day, kind, subject), packed)
    return Held(daily.DAYS, _by_key(fetch(DAY, day)), tallied, read)


def _tally(tallied: dict[Key, Tally], key: Key, packed: bytes) -> None:
    plays, before = tallied.get(key, NONE)
    joined = before + packed
    tallied[key] = plays + len(packed) // listeners.WIDTH, listeners.merge([joined]) if len(joined) > LARGE else joined


def _by_key(rows: Iterable[tuple[int, int, int, int, bytes]]) -> dict[Key, Tally]:
    return {(a, b, c): (plays, packed) for a, b, c, plays, packed in rows}


def of_block(block: int, kind: int, subject: int, end: int | None) -> Held:
    """The rows of a block of the subjects from this one on, below the end; counted from days."""
    mark = monthly.mark()
    days = monthly.gather(block, kind, subject, end)
    made = {(kind, each, block): tally for each, tally in days.items() if mark.passed(block, kind, each)}
    return Held(daily.BLOCKS, _by_key(fetch(BLOCK, kind, subject, monthly.last(end), block)), made)


def of_stretch(stretch: int) -> Held:
    """The rows of a stretch that are there, counted from days; it need not hold every subject."""
    stored = _by_key(fetch(STRETCH, stretch))
    days: dict[Key, list[Tally]] = defaultdict(list)
    numbers = ", ".join(map(str, weekly.days_of(stretch)))
    for kind, subject, plays, packed in fetch(OF_STRETCH.format(days=numbers), stretch):
        days[kind, subject, stretch].append((plays, packed))
    counted = {
        key: (sum(plays for plays, _ in some), listeners.merge(packed for _, packed in some))
        for key, some in days.items()
    }
    return Held(weekly.STRETCHES, stored, counted)


def of_totals() -> Held:
    """The totals of tracks that differ from those of their days."""
    stored, counted = {}, {}
    for track, before, now in fetch(OF_TOTALS):
        if before is not None:
            stored[track, 0, 0] = (before, b"")
        if now is not None:
            counted[track, 0, 0] = (now, b"")
    return Held(TOTALS, stored, counted)
