"""The keys of the daily play counts: a day, a kind and an id in one integer.

With a key of three columns, SQLite would need an index beside the table: a second search for each row, and a third
more pages to write with each batch of plays.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch

ID_BITS, KIND_BITS = 39, 2  # which leaves 22 for the days from the year 1 to 9999
DAY_SHIFT = ID_BITS + KIND_BITS
LAST_ID, LAST_KIND = (1 << ID_BITS) - 1, (1 << KIND_BITS) - 1
# SQL expressions of the parts of a key.
DAY = f"(key >> {DAY_SHIFT})"
KIND = f"((key >> {ID_BITS}) & {LAST_KIND})"
SUBJECT = f"(key & {LAST_ID})"
# SQL for the first and the last day with plays, and for the first one of {since} and later; NULL without plays.
FIRST = f"(SELECT min(key) FROM play_day) >> {DAY_SHIFT}"  # noqa: S608 - a constant
LAST = f"(SELECT max(key) FROM play_day) >> {DAY_SHIFT}"  # noqa: S608 - a constant
FIRST_SINCE = f"(SELECT min(key) FROM play_day WHERE key >= CAST({{since}} AS BIGINT) << {DAY_SHIFT}) >> {DAY_SHIFT}"  # noqa: S608 - a constant
# The counts of each id, to be added up.
COUNTS = f"SELECT {SUBJECT}, plays, listeners, histogram FROM {{rows}}"  # noqa: S608 - a constant
IN_SPAN = "key >= ? AND key < ?"  # a condition, whose values `span` returns


def key(day: int, kind: int, subject: int) -> int:
    """Return the key of a row. `day`: days since 1970-01-01. `subject`: the id of a track, album or artist (`kind`)."""
    return (day << DAY_SHIFT) + (kind << ID_BITS) + subject


def parts(of: int) -> tuple[int, int, int]:
    """Return the day, kind and id of a key."""
    return of >> DAY_SHIFT, of >> ID_BITS & LAST_KIND, of & LAST_ID


def span(days: range) -> tuple[int, int]:
    """Return the values of the condition IN_SPAN for all rows of these days."""
    return key(days.start, 0, 0), key(days.stop, 0, 0)


def rows(days: Collection[int], kind: int, ids: Iterable[int]) -> tuple[str, list[Any]]:
    """Return SQL to put after FROM, for some tracks, albums or artists (`kind`) on some days, and its values.

    More conditions can be added with AND. Neither `days` nor `ids` may be empty.
    """
    given, starts = dialect.table_of(sorted(key(day, kind, 0) for day in days))
    chosen, numbers = dialect.table_of(sorted(ids), "chosen")
    return f"{given} CROSS JOIN {chosen} CROSS JOIN play_day WHERE key = given.value + chosen.value", [starts, numbers]


def fetch_rows(query: str, days: Collection[int], kind: int, ids: Collection[int], *values: Any) -> list[Any]:
    """Run a query with `{rows}` after FROM for the rows of `ids` on `days`. `values` are those of more conditions."""
    if not days or not ids:
        return []
    source, found = rows(days, kind, ids)
    return fetch(query.format(rows=source), *found, *values)


def fetch_keys(query: str, keys: Collection[int]) -> list[Any]:
    """Run a query with `{rows}` after FROM for the rows with these keys."""
    if not keys:
        return []
    given, numbers = dialect.table_of(sorted(keys))
    return fetch(query.format(rows=f"{given} CROSS JOIN play_day WHERE key = given.value"), numbers)


def rows_between(days: Collection[int], kind: int, first: int, last: int) -> tuple[str, list[Any]]:
    """Do the same as `rows` for all ids from `first` to `last`. `days` must not be empty."""
    if len(days) == 1:
        (day,) = days
        return "play_day WHERE key BETWEEN ? AND ?", [key(day, kind, first), key(day, kind, last)]
    given, starts = dialect.table_of(sorted(key(day, kind, 0) for day in days))
    source = f"{given} CROSS JOIN play_day WHERE key BETWEEN given.value + ? AND given.value + ?"
    return source, [starts, first, last]


def dense_rows(days: Collection[int], kind: int, ids: Sequence[int]) -> tuple[str, list[Any]]:
    """Do the same as `rows` for ascending `ids`. If they have few gaps, the result also has the ids in the gaps."""
    if dialect.is_dense(ids):
        return rows_between(days, kind, ids[0], ids[-1])
    return rows(days, kind, ids)
