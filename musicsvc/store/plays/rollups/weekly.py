"""Weekly play counts, in periods of eight days, only for often played tracks, albums and artists.

Weekly counts speed up reading ranges that begin or end within a month. A week's counts are created after its last day,
and late plays are added. Old weeks, and weeks with few plays, have no counts: reading the daily counts is cheap.
"""

from collections import defaultdict
from collections.abc import Collection

from musicsvc.store.engine.dialect import concat_blob
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import daily
from musicsvc.store.plays.rollups import tables
from musicsvc.store.plays.rollups.tables import Counts, Key, New

DAYS = 8  # divides a month
KEPT = 13  # weeks: the window of 30 days, the 30 days before it, and a margin
LEAST_PLAYS = 16  # a day on average
WATERMARK = f"SELECT stretch, {daily.LAST} FROM play_mark"  # noqa: S608 - our own names
PLAYED = f"""
    SELECT {daily.KIND}, {daily.SUBJECT} FROM play_day WHERE {daily.IN_SPAN} AND plays >= {LEAST_PLAYS}
    GROUP BY 1, 2 HAVING SUM(plays) >= {LEAST_PLAYS * DAYS}
"""  # noqa: S608 - constants
ADD = """
    UPDATE play_stretch SET plays = plays + ?, listeners = {listeners}, histogram = {histogram}
    WHERE kind = ? AND subject = ? AND stretch = ?
"""


def within(days: Collection[int], watermark: int) -> list[int]:
    """Return the numbers of the weeks (of eight days) that may have counts and whose days are all in `days`.

    Days are counted since 1970-01-01. `watermark` is the number of the next week to be counted.
    """
    if not days:
        return []
    first, end = max(-(-min(days) // DAYS), watermark - KEPT), min((max(days) + 1) // DAYS, watermark)
    return [week for week in range(first, end) if all(day in days for day in days_of(week))]


def days_of(week: int) -> range:
    """Return the eight days of a week, as days since 1970-01-01."""
    return range(week * DAYS, (week + 1) * DAYS)


def add(new: New) -> None:
    """Add new plays, given by (day, kind) and by id of the track, album or artist, to existing weekly counts."""
    ((watermark, _),) = fetch(WATERMARK)
    late: dict[Key, bytes] = defaultdict(bytes)
    for (day, kind), some in new.items():
        if watermark - KEPT <= day // DAYS < watermark:
            for subject, plays in some.items():
                late[kind, subject, day // DAYS] += plays
    rows = [(*tables.split(plays), *key) for key, plays in sorted(late.items())]
    run_many(ADD.format(**{name: concat_blob(name, "?") for name in tables.BLOBS}), rows)


def roll_up() -> bool:
    """Create the play counts of the oldest finished week that has none. Return False if there is no such week."""
    ((watermark, newest),) = fetch(WATERMARK)
    last = -1 if newest is None else newest // DAYS
    if watermark >= last:
        return False
    week = max(watermark, last - KEPT)
    subjects: dict[int, list[int]] = defaultdict(list)
    for kind, subject in fetch(PLAYED, *daily.span(days_of(week))):
        subjects[kind].append(subject)
    for kind, some in subjects.items():
        counts = count(week, kind, some)
        tables.replace(tables.WEEKLY, [(kind, subject, week, *each) for subject, each in counts.items()])
    run("DELETE FROM play_stretch WHERE stretch < ?", last - KEPT)
    run("UPDATE play_mark SET stretch = ?", week + 1)
    return True


def count(week: int, kind: int, ids: Collection[int]) -> dict[int, Counts]:
    """Add up the daily counts of a week by id of the track, album or artist (`kind`)."""
    return tables.add_up(daily.fetch_rows(daily.COUNTS, days_of(week), kind, ids))


def delete(kind: int, subject: int) -> None:
    """Delete the weekly counts of a track, album or artist whose past plays changed. Daily counts are read instead."""
    run("DELETE FROM play_stretch WHERE kind = ? AND subject = ?", kind, subject)
