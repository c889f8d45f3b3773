"""Request counts of tokens and addresses, shared by all nodes; on SQLite they are in a separate file."""

from peewee import *


def up(migrator, db):
    if isinstance(db, SqliteDatabase):
        return
    # Unlogged: no write waits for the disk, and a crash empties the table. Half-filled pages leave room for updates.
    db.execute_sql(
        "CREATE UNLOGGED TABLE quota ("
        " key TEXT PRIMARY KEY, began BIGINT NOT NULL, taken BIGINT NOT NULL, earlier BIGINT NOT NULL,"
        " ends BIGINT NOT NULL) WITH (fillfactor = 50)"
    )
