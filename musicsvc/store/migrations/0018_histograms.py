"""Histograms of plays by hour of the week and by completion, filled from the single plays that are kept."""

from array import array
from collections import Counter, defaultdict
from sys import byteorder

from peewee import *

from musicsvc.store.schema import progress

SLOTS_PER_HOUR, SLOTS_PER_DAY, FIRST_HOUR = 120, 2880, 72
HOURS, COMPLETIONS, WITHOUT_DURATION, WITHOUT_LENGTH = 168, 154, 151, 152
SKIP_BEFORE_MS = 30_000
SIZE = HOURS + COMPLETIONS
TABLES = {"play_day": "day", "play_block": "block", "play_stretch": "stretch"}
TRACKS = """
    SELECT t.id, t.duration, t.album_id, a.artist_id FROM track t LEFT JOIN track_artist a ON a.track_id = t.id
    WHERE t.id IN (SELECT track_id FROM play WHERE slot >= ? AND slot < ?)
"""
PLAYS = "SELECT track_id, slot, duration_ms FROM play WHERE slot >= ? AND slot < ?"
DAYS = "SELECT kind, subject, histogram FROM play_day WHERE day >= ? AND day < ?"
UPDATE = "UPDATE {table} SET histogram = ? WHERE kind = ? AND subject = ? AND {number} = ?"


def completion(duration, length):
    if duration is None or not length:
        return WITHOUT_DURATION if duration is None else WITHOUT_LENGTH
    percent = duration * 100 // length
    return percent + 101 if duration < SKIP_BEFORE_MS and 2 * duration < length else min(100, percent)


def read(packed):
    """Return the numbers at the beginning of a histogram, if there are any, and its pairs."""
    if not len(packed) & 1:
        return [0] * SIZE, packed
    end = 1 + SIZE * packed[0]
    numbers = array(next(code for code in "QLIHB" if array(code).itemsize == packed[0]), packed[1:end])
    if byteorder == "big":
        numbers.byteswap()
    return list(numbers), packed[end:]


def merge(histograms):
    """Return the sum of histograms, in the format of musicsvc/store/plays/rollups/histograms.py."""
    joined = b"".join(histograms)
    if len(joined) <= 1 + SIZE and not any(len(packed) & 1 for packed in histograms):
        return joined
    counts = [0] * SIZE
    for packed in histograms:
        numbers, pairs = read(packed)
        counts = [one + other for one, other in zip(counts, numbers, strict=True)]
        for value, plays in Counter(pairs[::2]).items():
            counts[value] += plays
        for value, plays in Counter(pairs[1::2]).items():
            counts[HOURS + value] += plays
    width = next(width for width in (1, 2, 4, 8) if max(counts) < 1 << 8 * width)
    numbers = array(next(code for code in "QLIHB" if array(code).itemsize == width), counts)
    if byteorder == "big":
        numbers.byteswap()
    return bytes((width,)) + numbers.tobytes()


def up(migrator, db):
    kind = "BLOB NOT NULL DEFAULT x''" if isinstance(db, SqliteDatabase) else "bytea NOT NULL DEFAULT ''::bytea"
    for table in TABLES:
        db.execute_sql(f"ALTER TABLE {table} ADD COLUMN histogram {kind}")
    days = fetch(db, "SELECT DISTINCT day FROM play_day ORDER BY day")
    for done, (day,) in enumerate(days):
        progress.report(done, len(days))
        update(db, "play_day", day, {subject: [bytes(some)] for subject, some in of_day(db, day).items()})
    for table, days in (("play_block", 32), ("play_stretch", 8)):
        for (number,) in fetch(db, f"SELECT DISTINCT {TABLES[table]} FROM {table} ORDER BY 1"):
            parts = defaultdict(list)
            for kind, subject, packed in fetch(db, DAYS, number * days, (number + 1) * days):
                parts[kind, subject].append(bytes(packed))
            update(db, table, number, parts)


def of_day(db, day):
    """Return the plays of a day, two bytes each, by (kind, id)."""
    slots = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
    lengths, subjects = {}, defaultdict(set)
    for track, length, album, artist in fetch(db, TRACKS, *slots):
        lengths[track] = length
        subjects[track] |= {each for each in ((1, track), (2, album), (3, artist)) if each[1] is not None}
    pairs = defaultdict(bytearray)
    for track, slot, duration in fetch(db, PLAYS, *slots):
        hour = (slot // SLOTS_PER_HOUR + FIRST_HOUR) % HOURS
        for subject in subjects[track]:
            pairs[subject] += bytes((hour, completion(duration, lengths[track])))
    return pairs


def fetch(db, statement, *values):
    return db.execute_sql(statement.replace("?", db.param), values).fetchall()


def update(db, table, number, histograms):
    statement = UPDATE.format(table=table, number=TABLES[table]).replace("?", db.param)
    rows = [(merge(some), *subject, number) for subject, some in histograms.items()]
    if rows:
        db.cursor().executemany(statement, rows)
