"""Request counts of tokens and addresses, shared by all nodes; on SQLite they are in a separate file."""

from peewee import *


def up(migrator, db):
    if isinstance(db, SqliteDatabase):
        return
    # Unlogged: after a crash it is empty, and no disk is waited for. Half-filled pages take new versions of rows.
    db.execute_sql(
        "CREATE UNLOGGED TABLE quota ("
        " key TEXT PRIMARY KEY, began BIGINT NOT NULL, taken BIGINT NOT NULL, earlier BIGINT NOT NULL,"
        " ends BIGINT NOT NULL) WITH (fillfactor = 50)"
    )
