"""Fill `email_key` with the normalized email; of rows with the same key, only the oldest gets it."""

from peewee import *

from musicsvc.store.accounts import email_addresses

# A request is unique among the pending ones alone.
OLDEST_FIRST = {
    "account": "SELECT id, email, email_key, 1 FROM account ORDER BY created_at, id",
    "access_request": "SELECT id, email, email_key, CASE state WHEN 'pending' THEN 1 ELSE 0 END"
    " FROM access_request ORDER BY created_at, id",
}
INDEXES = {
    "account_email_key": "CREATE UNIQUE INDEX account_email_key ON account (email_key)",
    "access_request_email_key": "CREATE INDEX access_request_email_key ON access_request (email_key)",
    "access_request_pending": "CREATE UNIQUE INDEX access_request_pending ON access_request (email_key)"
    " WHERE state = 'pending'",
}


def up(migrator, db):
    for name in INDEXES:
        db.execute_sql(f"DROP INDEX {name}")
    for table, query in OLDEST_FIRST.items():
        _allow_null(db, table)
        for row_id, new in _changes(db, query):
            db.execute_sql(f"UPDATE {table} SET email_key = {db.param} WHERE id = {db.param}", (new, row_id))
    for statement in INDEXES.values():
        db.execute_sql(statement)


def _allow_null(db, table):
    """Make the column nullable; SQLite does so by copying it into another one."""
    if not isinstance(db, SqliteDatabase):
        db.execute_sql(f"ALTER TABLE {table} ALTER COLUMN email_key DROP NOT NULL")
        return
    db.execute_sql(f"ALTER TABLE {table} ADD COLUMN new_email_key TEXT")
    db.execute_sql(f"UPDATE {table} SET new_email_key = email_key")
    db.execute_sql(f"ALTER TABLE {table} DROP COLUMN email_key")
    db.execute_sql(f"ALTER TABLE {table} RENAME COLUMN new_email_key TO email_key")


def _changes(db, query):
    """Return the rows whose key changes, with the new one. Keys that stay the same were unique before."""
    moved = {new for _, email, old, _ in db.execute_sql(query) if (new := email_addresses.normalize(email)) != old}
    owned, changes = set(), []
    for row_id, email, old, unique in db.execute_sql(query):
        new = email_addresses.normalize(email)
        if unique and new in moved:
            new = None if new in owned else new
            owned.add(new)
        if new != old:
            changes.append((row_id, new))
    return changes
