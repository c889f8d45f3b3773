"""Keep the counts of rate limits over a crash of PostgreSQL and on its replicas, so that no limit begins again."""

from peewee import SqliteDatabase

oldest_program = "0.1.0"


def up(migrator, db):
    if not isinstance(db, SqliteDatabase):
        db.execute_sql("ALTER TABLE quota SET LOGGED")
