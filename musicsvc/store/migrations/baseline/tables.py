"""Creates tables. Their statements are written as for PostgreSQL, with the WITHOUT ROWID of SQLite."""

from peewee import *

SQLITE = {
    "BIGSERIAL PRIMARY KEY": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",  # ids of deleted rows are not reused
    "BIGINT": "INTEGER",
    "BYTEA": "BLOB",
    "DOUBLE PRECISION": "REAL",
    ' COLLATE "C"': "",
    "BOOLEAN": "INTEGER",
    "\n);": "\n) STRICT;",
    "\n) WITHOUT ROWID;": "\n) WITHOUT ROWID, STRICT;",
}
POSTGRES = {" WITHOUT ROWID": ""}


def create(db, statements):
    for old, new in (SQLITE if isinstance(db, SqliteDatabase) else POSTGRES).items():
        statements = statements.replace(old, new)
    db.execute_sql(statements)
