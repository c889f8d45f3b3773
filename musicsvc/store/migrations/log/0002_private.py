"""A mark on calls to resources that can be private, and an index of the successful ones."""

from peewee import *

PRIVATE = ("playlists/%", "conversations/%", "collections/%", "notifications/%")
INSIGHTS = "/api/v1/producer-intelligence/insights/%"


def up(migrator, db):
    kind = "INTEGER NOT NULL DEFAULT 0" if isinstance(db, SqliteDatabase) else "BOOLEAN NOT NULL DEFAULT FALSE"
    db.execute_sql(f"ALTER TABLE activity ADD COLUMN private {kind}")
    either = " OR ".join([f"resource LIKE {db.param}"] * len(PRIVATE) + [f"route LIKE {db.param}"])
    update = f"UPDATE activity SET private = TRUE WHERE resource IS NOT NULL AND ({either})"
    db.execute_sql(update, (*PRIVATE, INSIGHTS))
    db.execute_sql("CREATE INDEX activity_read ON activity (account_id, resource, at) WHERE private AND status < 400")
