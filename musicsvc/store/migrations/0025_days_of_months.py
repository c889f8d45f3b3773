"""Plays and listeners of each day with the monthly counts of popular tracks, counted while new plays are recorded."""

from peewee import *


def up(migrator, db):
    kind = "BLOB" if isinstance(db, SqliteDatabase) else "bytea"
    db.execute_sql(f"ALTER TABLE play_block ADD COLUMN days {kind}")
    db.execute_sql("CREATE INDEX play_block_without_days ON play_block (block) WHERE days IS NULL AND plays >= 256")
