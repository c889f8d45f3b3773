"""Find wrong counts: compare daily counts with single plays, likes and reposts, and other counts with daily counts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.plays import daily, ranks, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY, to_date
from musicsvc.store.plays.rollups import histograms, listeners, monthly, tables, weekly
from musicsvc.store.plays.rollups.tables import Counts, Key, Table
from musicsvc.store.plays.subjects import KINDS, TRACK, Subject

SLOTS_PER_FETCH = 120  # an hour
FEW_PLAYS = 2_000  # a day with at most this number of plays is read at once
LARGE = 4096  # bytes; a larger set is compacted while plays are added to it
NOUNS = {kind: noun for noun, kind in KINDS.items()}
PLAYS = "SELECT track_id, slot, listener_id, duration_ms FROM play WHERE slot >= ? AND slot < ?"
UP_TO = "SELECT count(*) FROM (SELECT 1 FROM play WHERE slot >= ? AND slot < ? LIMIT ?) AS first_plays"
DAY = f"SELECT key, plays, listeners, histogram FROM play_day WHERE {daily.IN_SPAN}"  # noqa: S608 - our own names
MONTH = """
    SELECT kind, subject, block, plays, listeners, histogram FROM play_block
    WHERE kind = ? AND subject BETWEEN ? AND ? AND block = ?
"""
WEEK = "SELECT kind, subject, stretch, plays, listeners, histogram FROM play_stretch WHERE stretch = ?"
TOTALS = tables.Table("track_plays", ("track_id", "", ""), ())
# Only the totals that differ, as there is one for each track.
WRONG_TOTALS = f"""
    SELECT d.track_id, p.plays, d.plays FROM (
        SELECT {daily.SUBJECT} AS track_id, CAST(sum(plays) AS BIGINT) AS plays
        FROM play_day WHERE {daily.KIND} = {TRACK} GROUP BY 1
    ) AS d LEFT JOIN track_plays p ON p.track_id = d.track_id WHERE p.plays IS DISTINCT FROM d.plays
    UNION ALL SELECT track_id, plays, NULL FROM track_plays
    WHERE track_id NOT IN (SELECT {daily.SUBJECT} FROM play_day WHERE {daily.KIND} = {TRACK})
"""  # noqa: S608 - our own names
NONE: Counts = (0, b"", b"")
OTHER_DAYS = ": the counts of its days"
OTHER_HISTOGRAM = ": hours and completion"


@dataclass(slots=True)
class Comparison:
    """Stored and recomputed play counts of one table, by row key. `plays` is the number of single plays read.

    `other_days` are the keys of monthly rows whose stored daily numbers are wrong.
    """

    table: Table
    stored: dict[Key, Counts]
    expected: dict[Key, Counts]
    plays: int = 0
    other_days: set[Key] = field(default_factory=set)

    @property
    def rows(self) -> int:
        """The number of rows that were compared."""
        return len(self.expected.keys() | self.stored.keys())

    def differing(self) -> list[Key]:
        """Return the sorted keys of all rows that are wrong, missing or superfluous."""
        keys = self.stored.keys() | self.expected.keys()
        wrong = {key for key in keys if not _same(self.stored.get(key), self.expected.get(key))}
        return sorted(wrong | self.other_days)

    def sizes(self, key: Key) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (plays, listeners) of the stored row, then of the recomputed row. A missing row has (0, 0)."""
        stored, expected = self.stored.get(key, NONE), self.expected.get(key, NONE)
        return (stored[0], listeners.count(stored[1])), (expected[0], listeners.count(expected[1]))

    def name(self, key: Key) -> str:
        """Return the row's name for people, such as `track 7, 2026-01-31`."""
        if self.table is TOTALS:
            return f"track {key[0]}, all time"
        stored, expected = self.sizes(key)
        other = OTHER_DAYS if key in self.other_days else OTHER_HISTOGRAM
        what = other if stored == expected else ""
        if self.table is tables.DAILY:
            return f"{NOUNS[key[1]]} {key[2]}, {to_date(key[0])}{what}"
        days = monthly.DAYS if self.table is tables.MONTHLY else weekly.DAYS
        return f"{NOUNS[key[0]]} {key[1]}, the {days} days from {to_date(key[2] * days)}{what}"

    def repair(self, keys: Sequence[Key]) -> None:
        """Replace the stored rows with these keys by the recomputed ones. Rows that should not exist are deleted."""
        wrong = [key for key in keys if key in self.stored]
        right = [(*key, *self.expected[key]) for key in keys if key in self.expected]
        if self.table is TOTALS:
            rows = [(track, plays) for track, _, _, plays, *_ in right]
            with ranks.moving([key[0] for key in keys]):
                run_many("DELETE FROM track_plays WHERE track_id = ?", [(track,) for track, _, _ in wrong])
                run_many("INSERT INTO track_plays (track_id, plays) VALUES (?, ?)", rows)
            return
        tables.delete(self.table, wrong)
        tables.replace(self.table, right)


def _same(one: Counts | None, other: Counts | None) -> bool:
    if one is None or other is None or one[0] != other[0]:
        return False
    if one[1] != other[1] and listeners.union([one[1]]) != listeners.union([other[1]]):
        return False
    return one[2] == other[2] or histograms.unpack([one[2]]) == histograms.unpack([other[2]])


@dataclass(slots=True)
class EngagementComparison:
    """Wrong daily numbers of likes or reposts, by (kind, id, day)."""

    wrong: dict[Key, engagement_days.WrongDay]
    plays = 0

    @property
    def rows(self) -> int:
        """The number of wrong rows. Correct rows are not loaded, so they are not counted."""
        return len(self.wrong)

    def differing(self) -> list[Key]:
        return sorted(self.wrong)

    def sizes(self, key: Key) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (likes, reposts) as stored, then as recounted."""
        return self.wrong[key].stored, self.wrong[key].counted

    def name(self, key: Key) -> str:
        """Return the row's name for people, such as `track 7, 2026-01-31: likes and reposts`."""
        return f"{NOUNS[key[0]]} {key[1]}, {to_date(key[2])}: likes and reposts"

    def repair(self, keys: Sequence[Key]) -> None:
        """Recount the likes and reposts of the tracks, albums and artists in `keys`."""
        engagement_days.lock()
        engagement_days.rebuild({(kind, subject) for kind, subject, _ in keys})


def compare_day(day: int) -> Comparison:
    """Compare the stored play counts of a day (days since 1970-01-01) with the single plays of that day."""
    read = 0
    expected: dict[Key, Counts] = {}
    lengths: dict[int, int] = {}
    by_track: dict[int, list[Subject]] = {}
    begin, end = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
    ((plays,),) = fetch(UP_TO, begin, end, FEW_PLAYS + 1)
    width = SLOTS_PER_FETCH if plays > FEW_PLAYS else SLOTS_PER_DAY
    for start in range(begin, end, width):
        found = fetch(PLAYS, start, start + width)
        if fresh := {track for track, *_ in found} - by_track.keys():
            # A track that does not exist counts for itself.
            existing = subjects.of_tracks(fresh)
            lengths |= dict.fromkeys(fresh, 0) | existing.lengths
            by_track |= {track: [Subject(TRACK, track)] for track in fresh} | existing.subjects()
        played: dict[int, bytes] = defaultdict(bytes)
        packed: dict[int, bytes] = defaultdict(bytes)
        for track, slot, listener, duration_ms in found:
            played[track] += listeners.pack([listener])
            packed[track] += histograms.pack(slot, duration_ms, lengths[track])
        read += len(found)
        for track, people in played.items():
            for subject in by_track[track]:
                _add(expected, (day, *subject), people, packed[track])
    stored = {daily.parts(key): tuple(counts) for key, *counts in fetch(DAY, *daily.span(range(day, day + 1)))}
    return Comparison(tables.DAILY, stored, expected, read)


def _add(expected: dict[Key, Counts], key: Key, played: bytes, packed: bytes) -> None:
    plays, people, histogram = expected.get(key, NONE)
    plays, people, histogram = plays + len(played) // listeners.WIDTH, people + played, histogram + packed
    if len(people) > LARGE:
        people, histogram = listeners.merge([people]), histograms.merge([histogram])
    expected[key] = plays, people, histogram


def _by_key(rows: Iterable[tuple[int, int, int, int, bytes, bytes]]) -> dict[Key, Counts]:
    return {(a, b, c): (plays, people, histogram) for a, b, c, plays, people, histogram in rows}


def compare_month(month: int, kind: int, subject: int, end: int | None) -> Comparison:
    """Compare monthly with daily counts of tracks, albums or artists (`kind`), for ids from `subject` to `end` - 1.

    If `end` is None, there is no upper limit.
    """
    watermark = monthly.watermark()
    counts = monthly.count(month, kind, subject, end)
    expected = {(kind, each, month): some for each, some in counts.items() if watermark.rolled_up(month, kind, each)}
    stored = _by_key(fetch(MONTH, kind, subject, monthly.last(end), month))
    days = monthly.stored_days(kind, [each for _, each, _ in stored], range(month, month + 1))
    wrong = {
        (kind, each, month)
        for (each, _), some in days.items()
        if some and some != monthly.count_days(kind, each, month)
    }
    return Comparison(tables.MONTHLY, stored, expected, other_days=wrong)


def compare_week(week: int) -> Comparison:
    """Compare the stored play counts of a week with the daily counts. Missing weekly rows are not errors."""
    stored = _by_key(fetch(WEEK, week))
    expected: dict[Key, Counts] = {}
    for kind in KINDS.values():
        ids = [subject for of_kind, subject, _ in stored if of_kind == kind]
        expected |= {(kind, subject, week): some for subject, some in weekly.count(week, kind, ids).items()}
    return Comparison(tables.WEEKLY, stored, expected)


def compare_engagement() -> EngagementComparison:
    """Compare the daily numbers of likes and reposts with the likes and reposts themselves."""
    return EngagementComparison({(each.kind, each.subject, each.day): each for each in engagement_days.wrong()})


def compare_totals() -> Comparison:
    """Compare the all-time plays of tracks with their daily counts. The result contains only tracks that differ."""
    stored, expected = {}, {}
    for track, before, now in fetch(WRONG_TOTALS):
        if before is not None:
            stored[track, 0, 0] = (before, b"", b"")
        if now is not None:
            expected[track, 0, 0] = (now, b"", b"")
    return Comparison(TOTALS, stored, expected)
