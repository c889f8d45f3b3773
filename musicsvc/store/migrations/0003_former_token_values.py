"""Let the value that a token had before it was regenerated live on for a while. Older programs refuse it at once."""

from peewee import SqliteDatabase

oldest_program = "0.1.0"


def up(migrator, db):
    binary, number = ("BLOB", "INTEGER") if isinstance(db, SqliteDatabase) else ("BYTEA", "BIGINT")
    db.execute_sql(f"ALTER TABLE token ADD COLUMN former_digest {binary}")
    db.execute_sql(f"ALTER TABLE token ADD COLUMN former_expires_at {number}")
    db.execute_sql("CREATE UNIQUE INDEX token_former_digest ON token (former_digest)")
