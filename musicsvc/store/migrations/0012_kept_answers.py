"""Keep the answers to requests with an `Idempotency-Key`.

Programs of 0.1.0 keep none, and leave those of deleted accounts, whose numbers no account gets again.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"

TABLES = """
    CREATE TABLE kept_answer (
        id {serial}, user_id {number} NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL,
        body_hash {bytes} NOT NULL, answer {bytes} NOT NULL, kept_at {number} NOT NULL
    ) {strict};
    CREATE UNIQUE INDEX kept_answer_user_id_key ON kept_answer (user_id, key);
    CREATE INDEX kept_answer_user_id_id ON kept_answer (user_id, id);
    CREATE INDEX kept_answer_kept_at ON kept_answer (kept_at)
"""


def up(migrator, db):
    types = {"serial": "BIGSERIAL PRIMARY KEY", "number": "BIGINT", "bytes": "BYTEA", "strict": ""}
    if isinstance(db, SqliteDatabase):
        types = {"serial": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "number": "INTEGER", "bytes": "BLOB"}
        types["strict"] = "STRICT"
    for statement in TABLES.format(**types).split(";"):
        db.execute_sql(statement)
