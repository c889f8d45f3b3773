"""The table of play counts: rows of days, of blocks of 8 days and of blocks of 32 days.

A row has the number of plays of a subject (a track, album, artist or account) in this time, how many of them are plays
that listeners' own accounts reported, the set of listener ids, and the histogram. One integer is the key of a row. From
its highest bits down it has the level (0 is a day, 1 are 8 days, 2 are 32 days), the number of the period, the kind,
and the id of the subject, so rows of one day are neighbours, whatever the id. With a key of several columns, SQLite
would need an index beside the table: a second search for each row, and a third more pages to write with each batch of
plays.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple

from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays.rollups import histograms, listeners

DAY, BLOCK8, BLOCK32 = 0, 1, 2  # levels
UNCOUNTED = 3  # the level of batches of plays that are not counted yet: musicsvc.store.plays.counting
DAYS = (1, 8, 32)  # of a period, by level
SHIFT = (0, 3, 5)  # the number of a day >> SHIFT[level] is the number of its period
ID_BITS, KIND_BITS, PERIOD_BITS = 37, 2, 22  # periods: every day from the year 1 to 9999
REST_BITS = ID_BITS + KIND_BITS
LEVEL_SHIFT = REST_BITS + PERIOD_BITS
LAST_ID, LAST_KIND, LAST_PERIOD = (1 << ID_BITS) - 1, (1 << KIND_BITS) - 1, (1 << PERIOD_BITS) - 1
REST = (1 << REST_BITS) - 1  # the bits of kind and id
ORIGIN = 719_168  # days from a day before the year 1 to 1970-01-01; a multiple of 32, the longest period
LOCK = 0x504C4159  # "PLAY"
COUNTING = 0x504C4143  # "PLAC"
MANY_GAPS = 8  # the rows between ids are looked at if these are at least a part of this size of them
COMPACT_EVERY = 64  # plays between compactions of a row, hence the most integers after its bitmap
# SQL expressions of the parts of a key. PERIOD has the level, too: no two periods have the same.
PERIOD = f"(key >> {REST_BITS})"
KIND = f"(key >> {ID_BITS} & {LAST_KIND})"
SUBJECT = f"(key & {LAST_ID})"
OF_DAY = f"((key >> {REST_BITS}) - {ORIGIN})"  # the day of a row of level 0
IN_SPAN = "key >= ? AND key < ?"  # a condition, whose values `span` returns
COLUMNS = "plays, own, listeners, histogram"
KEYS = "SELECT key FROM {rows}"
ROWS = f"SELECT key, {COLUMNS} FROM {{rows}}"  # noqa: S608 - our own names
TYPES = ("bigint", "bigint", "bigint", "bytea", "bytea")
REPLACE = f"""
    INSERT INTO play_count (key, {COLUMNS}) {{rows}} ON CONFLICT (key) DO UPDATE
    SET plays = excluded.plays, own = excluded.own, listeners = excluded.listeners, histogram = excluded.histogram
"""  # noqa: S608 - constants
PACKED_PLAY = Struct("<IBB")  # a new play: its listener's id, its hour of the week, its completion
PLAY = PACKED_PLAY.size
Counts = tuple[int, int, bytes, bytes]  # plays, own plays, packed listeners, packed histogram


class Key(NamedTuple):
    """The parts of a key. `day` is the first day of the period, counted since 1970-01-01."""

    level: int
    day: int
    kind: int
    id: int


def start(level: int, day: int) -> int:
    """Return the lowest key of the period that contains a day (since 1970-01-01)."""
    return (level << LEVEL_SHIFT) + (day + ORIGIN >> SHIFT[level] << REST_BITS)


def starts(days: Iterable[int], level: int = DAY) -> list[int]:
    return [start(level, day) for day in days]


def key(level: int, day: int, kind: int, subject: int) -> int:
    """Return the key of a row. `subject`: the id of a track, album or artist (`kind`)."""
    return start(level, day) + (kind << ID_BITS) + subject


def parts(of: int) -> Key:
    level = of >> LEVEL_SHIFT
    return Key(level, first_day(of), of >> ID_BITS & LAST_KIND, of & LAST_ID)


def first_day(of: int) -> int:
    """Return the first day of the period of a key."""
    return ((of >> REST_BITS & LAST_PERIOD) << SHIFT[of >> LEVEL_SHIFT]) - ORIGIN


def days_of(of: int) -> range:
    """Return the days of the period of a key, as days since 1970-01-01."""
    first = first_day(of)
    return range(first, first + DAYS[of >> LEVEL_SHIFT])


def cover(level: int, of: int) -> int:
    """Return the key of the same track, album or artist on this level, in the period that contains the day of a key."""
    return (level << LEVEL_SHIFT) + (of >> REST_BITS >> SHIFT[level] << REST_BITS) + (of & REST)


def span(days: range) -> tuple[int, int]:
    """Return the values of the condition IN_SPAN for all rows of these days."""
    return start(DAY, days.start), start(DAY, days.stop)


def rows(periods: Collection[int], kind: int, ids: Iterable[int]) -> tuple[str, list[Any]]:
    """Return SQL to put after FROM, for some tracks, albums or artists (`kind`) in some periods, and its values.

    `periods` are the lowest keys of the periods, of any level. Neither `periods` nor `ids` may be empty.
    """
    given, firsts = sql.table_of(sorted(each + (kind << ID_BITS) for each in periods))
    chosen, numbers = sql.table_of(sorted(ids), "chosen")
    source = f"{given} CROSS JOIN {chosen} CROSS JOIN play_count WHERE key = given.value + chosen.value"
    return source, [firsts, numbers]


def rows_between(periods: Collection[int], first: int, end: int) -> tuple[str, list[Any]]:
    """Do the same for all kinds and ids (the lower bits of a key) from `first` to `end` - 1."""
    given, firsts = sql.table_of(sorted(periods))
    source = f"{given} CROSS JOIN play_count WHERE key >= given.value + ? AND key < given.value + ?"
    return source, [firsts, first, end]


def dense_rows(periods: Collection[int], kind: int, ids: Sequence[int]) -> tuple[str, list[Any]]:
    """Do the same as `rows` for ascending `ids`. If they have few gaps, the result also has the ids in the gaps.

    If they have some more, all rows between the first and the last id are looked at: most days lack most subjects, and
    to search for each id on each day takes several times as long.
    """
    if not sql.is_dense(ids, MANY_GAPS):
        return rows(periods, kind, ids)
    source, values = rows_between(periods, (kind << ID_BITS) + ids[0], (kind << ID_BITS) + ids[-1] + 1)
    if sql.is_dense(ids):
        return source, values
    chosen, numbers = sql.table_of(ids, "chosen")
    source = f"(SELECT * FROM {source}{sql.fence()}) AS play_count WHERE {SUBJECT} IN (SELECT value FROM {chosen})"  # noqa: S608 - our own names
    return source, [*values, numbers]


def fetch_rows(query: str, periods: Collection[int], kind: int, ids: Collection[int]) -> list[Any]:
    """Run a query with `{rows}` after FROM for the rows of `ids` in these periods, given by their lowest keys."""
    if not periods or not ids:
        return []
    source, values = rows(periods, kind, ids)
    return fetch(query.format(rows=source), *values)


def days_stored(days: Iterable[int], kind: int, ids: Collection[int]) -> list[int]:
    """Return those of the days on which some of the tracks, albums or artists (`kind`) have rows, ascending."""
    return sorted({first_day(each) for (each,) in fetch_rows(KEYS, starts(days), kind, ids)})


def fetch_keys(query: str, keys: Collection[int]) -> list[Any]:
    """Run a query with `{rows}` after FROM for the rows with these keys."""
    if not keys:
        return []
    given, numbers = sql.table_of(sorted(keys))
    return fetch(query.format(rows=f"{given} CROSS JOIN play_count WHERE key = given.value"), numbers)


def pack(slot: int, listener: int, duration_ms: int | None, length: int) -> bytes:
    """Return a new play as bytes. `slot`: half minutes since 1970. `length`: the track's length in ms, 0 if unknown."""
    hour = (slot // histograms.SLOTS_PER_HOUR + histograms.FIRST_HOUR) % histograms.HOURS
    return PACKED_PLAY.pack(listener, hour, histograms.completion(duration_ms, length))


def split(new: bytes) -> tuple[int, bytes, bytes]:
    """Convert packed new plays into (number of plays, packed listener ids, packed histogram)."""
    if len(new) == PLAY:  # most often
        return 1, new[:4], new[4:]
    if len(new) == 2 * PLAY:
        return 2, new[:4] + new[6:10], new[4:6] + new[10:]
    pairs = array("H", new)  # two bytes each: two of a listener, then one of a histogram
    people = array("H", bytes(len(new) // PLAY * listeners.WIDTH))
    people[::2], people[1::2] = pairs[::3], pairs[1::3]
    return len(new) // PLAY, people.tobytes(), pairs[2::3].tobytes()


def add(new: Mapping[int, bytes], own: Mapping[int, int]) -> None:
    """Add packed new plays to the rows with these keys, and create those that do not exist. `own`: how many are own."""
    statement = f"""
        INSERT INTO play_count (key, {COLUMNS}) {{rows}} ON CONFLICT (key) DO UPDATE
        SET plays = {bulk.sum_noting("play_count.plays", "excluded.plays", COMPACT_EVERY, ["play_count.key"])},
            own = play_count.own + excluded.own,
            listeners = {sql.concat_blob("play_count.listeners", "excluded.listeners")},
            histogram = {sql.concat_blob("play_count.histogram", "excluded.histogram")}
    """  # noqa: S608 - our own SQL
    inserted: list[tuple[Any, ...]] = []
    for each in sorted(new):
        packed = new[each]
        if len(packed) == PLAY:  # most often, and a call of `split` would take a third longer
            inserted.append((each, 1, own.get(each, 0), packed[:4], packed[4:]))
        else:
            plays, *blobs = split(packed)
            inserted.append((each, plays, own.get(each, 0), *blobs))
    stored = bulk.insert_noting(statement, TYPES, inserted, ("key", "plays"))
    # The total of a row that was not stored before is its number of new plays.
    totals = chain((row[:2] for row in inserted if row[1] >= COMPACT_EVERY), stored)
    for each, plays in {row[0]: row[1] for row in totals if row[1] >= COMPACT_EVERY}.items():
        if plays % COMPACT_EVERY < len(new[each]) // PLAY:
            _compact(each)


def _compact(of: int) -> None:
    ((people, packed),) = fetch("SELECT listeners, histogram FROM play_count WHERE key = ?", of)
    smaller = listeners.merge([people]), histograms.merge([packed])
    run("UPDATE play_count SET listeners = ?, histogram = ? WHERE key = ?", *smaller, of)


def replace(keys: Iterable[int], right: Mapping[int, Counts]) -> None:
    """Write the rows with these keys. Those that are not in `right` have no plays and are deleted."""
    wanted = sorted(keys)
    run_many("DELETE FROM play_count WHERE key = ?", [(each,) for each in wanted if each not in right])
    bulk.insert_many(REPLACE, TYPES, [(each, *right[each]) for each in wanted if each in right])


def add_up(rows: Iterable[tuple[Any, ...]]) -> dict[int, Counts]:
    """Add up rows of (key, plays, own plays, packed listener ids, packed histogram). Return the totals by key."""
    found: dict[int, list[Counts]] = defaultdict(list)
    for each, plays, own, people, packed in rows:
        found[each].append((plays, own, people, packed))
    return {each: some[0] if len(some) == 1 else _sum(some) for each, some in found.items()}


def _sum(some: list[Counts]) -> Counts:
    plays, own, people, packed = zip(*some, strict=True)
    return sum(plays), sum(own), listeners.merge(people), histograms.merge(packed)
