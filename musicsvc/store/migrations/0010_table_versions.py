"""A number for each table, which changes with each commit that changes the table; caches compare them."""

from peewee import *


def up(migrator, db):
    if isinstance(db, SqliteDatabase):
        db.execute_sql(
            "CREATE TABLE table_version (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID, STRICT"
        )
        return
    # Writers at the same time have different slots, so that they need not wait for each other.
    db.execute_sql(
        "CREATE TABLE table_version (slot INTEGER NOT NULL, name TEXT NOT NULL, number BIGINT NOT NULL,"
        " PRIMARY KEY (slot, name)) WITH (fillfactor = 50)"
    )
