"""Daily numbers of the plays that listeners' own accounts reported, filled from the single plays that are kept."""

from peewee import *

FILL = """
    INSERT INTO own_play_day (track_id, day, plays)
    SELECT play.track_id, play.slot / 2880, count(*) FROM play JOIN listener ON listener.id = play.listener_id
    WHERE play.reporter > 0 AND substr(listener.key, 1, 8) = 'account:' GROUP BY play.track_id, play.slot / 2880
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class OwnPlayDay(Model):
        track = BigIntegerField(column_name="track_id")
        day = IntegerField()
        plays = BigIntegerField()

        class Meta:
            database = db
            table_name = "own_play_day"
            primary_key = CompositeKey("track", "day")
            strict_tables = sqlite
            without_rowid = sqlite

    db.create_tables([OwnPlayDay], safe=False)
    db.execute_sql(FILL)
    db.execute_sql(f"ALTER TABLE play_mark ADD COLUMN own_from {'INTEGER' if sqlite else 'INT'} NOT NULL DEFAULT 0")
    db.execute_sql("UPDATE play_mark SET own_from = kept_from")
