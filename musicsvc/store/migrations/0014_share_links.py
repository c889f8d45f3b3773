"""Keep of share links a period that moves along, and whether programs may read them. Those of before: neither.

Programs of 0.1.0 show a link with such a period on the days that it had when it was made.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"


def up(migrator, db):
    boolean = "INTEGER" if isinstance(db, SqliteDatabase) else "BOOLEAN"
    for column in ("period TEXT", f"programs {boolean} NOT NULL DEFAULT FALSE"):
        db.execute_sql(f"ALTER TABLE report_link ADD COLUMN {column}")
