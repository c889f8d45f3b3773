"""The schema of version 0.1.0."""

import secrets

from peewee import *

from musicsvc.store.migrations.baseline import accounts, catalog, list_blocks, names, plays, tables, track_ranks

oldest_program = "0.1.0"


def up(migrator, db):
    for part in (accounts, catalog, plays, list_blocks, track_ranks):
        tables.create(db, part.TABLES)
    _create_caches(db)
    list_blocks.create_triggers(db)
    track_ranks.create_triggers(db)
    names.create(db)
    # Other keys are derived from it.
    secret = f"INSERT INTO secret (name, value) VALUES ('installation', {db.param})"
    db.execute_sql(secret, (secrets.token_bytes(32),))


def _create_caches(db):
    """Create a number for each table, which each commit that changes the table increases, and the counts of limits."""
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
    # Unlogged: no write waits for the disk, and a crash empties the table. Half-filled pages leave room for updates.
    db.execute_sql(
        "CREATE UNLOGGED TABLE quota ("
        " key TEXT PRIMARY KEY, began BIGINT NOT NULL, requests BIGINT NOT NULL, previous BIGINT NOT NULL,"
        " ends BIGINT NOT NULL) WITH (fillfactor = 50)"
    )
