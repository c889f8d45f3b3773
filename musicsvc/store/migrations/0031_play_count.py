"""Play counts of days and of blocks of 8 and of 32 days in one table, with one integer as their key.

Counts of blocks are made again while plays are recorded. Until then, days are read instead.
"""

from peewee import *

# From the highest bits the key has the level (2), the period (22, from a day before the year 1), kind (2) and id (37).
DAYS = """
    INSERT INTO play_count (key, plays, own, listeners, histogram)
    SELECT (((d.key >> 41) + 719168) << 39) + ((d.key >> 39 & 3) << 37) + (d.key & 137438953471),
        d.plays, COALESCE(o.plays, 0), d.listeners, d.histogram
    FROM play_day d LEFT JOIN ({own}) AS o ON o.kind = (d.key >> 39 & 3) AND o.id = (d.key & 137438953471)
        AND o.day = (d.key >> 41)
    ORDER BY 1
"""
OWN = """
    SELECT 1 AS kind, track_id AS id, day, plays FROM own_play_day
    UNION ALL SELECT 2, t.album_id, o.day, CAST(sum(o.plays) AS BIGINT)
    FROM own_play_day o JOIN track t ON t.id = o.track_id WHERE t.album_id IS NOT NULL GROUP BY t.album_id, o.day
    UNION ALL SELECT 3, l.artist_id, o.day, CAST(sum(o.plays) AS BIGINT)
    FROM own_play_day o JOIN track_artist l ON l.track_id = o.track_id GROUP BY l.artist_id, o.day
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    class PlayCount(Table):
        key = BigIntegerField(primary_key=True)
        plays = BigIntegerField()
        own = BigIntegerField()
        listeners = BlobField()
        histogram = BlobField()

    class PlayProgress(Table):
        id = IntegerField(primary_key=True, constraints=[Check("id = 1")])
        block8 = BigIntegerField()
        block32 = BigIntegerField()
        kept_from = IntegerField()

    db.create_tables([PlayCount, PlayProgress], safe=False)
    db.execute_sql(DAYS.format(own=OWN))
    progress = f"SELECT 1, {1 << 61}, {2 << 61}, kept_from FROM play_mark"
    db.execute_sql(f"INSERT INTO play_progress (id, block8, block32, kept_from) {progress}")
    for table in ("play_day", "play_stretch", "play_block", "play_part", "own_play_day", "play_mark"):
        db.execute_sql(f"DROP TABLE {table}")
