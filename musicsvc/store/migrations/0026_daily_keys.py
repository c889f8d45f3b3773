"""Daily play counts with day, kind and id in one integer key, instead of three columns with an index of their own."""

from peewee import *

from musicsvc.store.schema import progress

KEY = "(CAST(day AS BIGINT) << 41) + (CAST(kind AS BIGINT) << 39) + subject"
DAYS = "SELECT DISTINCT day FROM play_day ORDER BY day"
INSERT = f"""
    INSERT INTO play_day_new (key, plays, listeners, histogram)
    SELECT {KEY}, plays, listeners, histogram FROM play_day WHERE day = ? ORDER BY day, kind, subject
"""


def up(migrator, db):
    class PlayDayNew(Model):
        key = BigIntegerField(primary_key=True)
        plays = BigIntegerField()
        listeners = BlobField()
        histogram = BlobField()

        class Meta:
            database = db
            table_name = "play_day_new"
            strict_tables = isinstance(db, SqliteDatabase)

    db.create_tables([PlayDayNew], safe=False)
    days = db.execute_sql(DAYS).fetchall()
    for done, (day,) in enumerate(days):
        progress.report(done, len(days))
        db.execute_sql(INSERT.replace("?", db.param), (day,))
    db.execute_sql("DROP TABLE play_day")
    db.execute_sql("ALTER TABLE play_day_new RENAME TO play_day")
    if not isinstance(db, SqliteDatabase):
        db.execute_sql("ALTER INDEX play_day_new_pkey RENAME TO play_day_pkey")
