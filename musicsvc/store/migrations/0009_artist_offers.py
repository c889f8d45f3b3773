"""Keep offers of artists to other accounts, and requests to the administrators to take all artists of an account.

Programs of 0.1.0 neither make nor show them, and leave those of deleted accounts, whose numbers no account gets again.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"

TABLES = """
    CREATE TABLE artist_offer (
        id {serial}, user_id {number} NOT NULL, recipient_id {number},
        email TEXT, note TEXT, created_at {number} NOT NULL, expires_at {number}
    ) {strict};
    CREATE INDEX artist_offer_user_id ON artist_offer (user_id);
    CREATE INDEX artist_offer_recipient_id ON artist_offer (recipient_id);
    CREATE INDEX artist_offer_expires_at ON artist_offer (expires_at);
    CREATE UNIQUE INDEX artist_offer_asked ON artist_offer (user_id) WHERE email IS NULL;
    CREATE TABLE artist_offer_artist (
        artist_offer_id {number} NOT NULL REFERENCES artist_offer (id) ON DELETE CASCADE,
        artist_id {number} NOT NULL, PRIMARY KEY (artist_offer_id, artist_id)
    ) {keyed}
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    types = {"serial": "BIGSERIAL PRIMARY KEY", "number": "BIGINT", "strict": "", "keyed": ""}
    if sqlite:
        types = {"serial": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "number": "INTEGER"}
        types |= {"strict": "STRICT", "keyed": "WITHOUT ROWID, STRICT"}
    for statement in TABLES.format(**types).split(";"):
        db.execute_sql(statement)
