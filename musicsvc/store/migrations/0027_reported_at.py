"""The time at which each play was reported, and an index of the plays that an account reported, in this order.

The time of plays that are stored already is not known. Imported plays have no reporter and are not in the index.
"""

from peewee import *


def up(migrator, db):
    whole = "INTEGER" if isinstance(db, SqliteDatabase) else "BIGINT"
    db.execute_sql(f"ALTER TABLE play ADD COLUMN reported_at {whole}")
    db.execute_sql("CREATE INDEX play_of_reporter ON play (reporter, reported_at) WHERE reporter > 0")
