"""Plays and listeners of popular tracks, albums and artists in two hours of a day, filled from single plays."""

from array import array
from collections import defaultdict
from sys import byteorder

from peewee import *
from pyroaring import BitMap

SLOTS_PER_DAY, SLOTS, PER_DAY = 2880, 240, 12
LEAST_PLAYS, FEW = 128, 32
DAYS = "SELECT DISTINCT day FROM play_day WHERE day >= (SELECT kept_from FROM play_mark) ORDER BY day"
POPULAR = "SELECT subject FROM play_day WHERE day = ? AND kind = ? AND plays >= ?"
PLAYS = {
    1: "SELECT p.slot, p.listener_id FROM play p WHERE p.track_id = ?",
    2: "SELECT p.slot, p.listener_id FROM track t CROSS JOIN play p WHERE t.album_id = ? AND p.track_id = t.id",
    3: "SELECT p.slot, p.listener_id FROM track_artist l CROSS JOIN play p"
    " WHERE l.artist_id = ? AND p.track_id = l.track_id",
}
INSERT = "INSERT INTO play_part (kind, subject, part, plays, listeners) VALUES (?, ?, ?, ?, ?)"


def up(migrator, db):
    class PlayPart(Model):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        part = IntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            database = db
            table_name = "play_part"
            primary_key = CompositeKey("kind", "subject", "part")
            strict_tables = isinstance(db, SqliteDatabase)

    db.create_tables([PlayPart], safe=False)
    for (day,) in fetch(db, DAYS):
        for kind in PLAYS:
            rows = [row for (each,) in fetch(db, POPULAR, day, kind, LEAST_PLAYS) for row in parts(db, day, kind, each)]
            if rows:
                db.cursor().executemany(INSERT.replace("?", db.param), rows)


def parts(db, day, kind, subject):
    """Return the rows of a subject's day."""
    heard = defaultdict(list)
    for slot, listener in fetch(db, f"{PLAYS[kind]} AND p.slot / {SLOTS_PER_DAY} = ?", subject, day):
        heard[slot // SLOTS].append(listener)
    numbers = range(day * PER_DAY, (day + 1) * PER_DAY)
    return [(kind, subject, part, len(heard[part]), pack(heard[part])) for part in numbers]


def pack(listeners):
    """Return listeners in the format of musicsvc/store/plays/rollups/listeners.py."""
    found = BitMap(listeners)
    if len(found) > FEW:
        bitmap = found.serialize()
        return len(bitmap).to_bytes(4, "little") + bitmap + bytes((1 - len(bitmap)) % 4)
    packed = array("I", found)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def fetch(db, statement, *values):
    return db.execute_sql(statement.replace("?", db.param), values).fetchall()
