"""A number for each table, which changes with each commit that changes the table; caches compare them."""

from peewee import *


def up(migrator, db):
    if isinstance(db, SqliteDatabase):
        db.execute_sql(
            "CREATE TABLE table_version (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID, STRICT"
        )
