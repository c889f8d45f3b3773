"""Keep listens that match no track yet, and numbers of those that were refused.

Plays get the columns that say where they come from; only `platform` is filled so far. Programs of 0.1.0 neither read
nor write any of it, and leave the listens of deleted accounts, whose numbers no account gets again.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"

COLUMNS = {"platform": "TEXT", "source": "TEXT", "country": "TEXT", "playlist_id": "BIGINT"}
TABLES = """
    CREATE TABLE pending_listen (
        id {serial}, user_id {number} NOT NULL,
        slot {number} NOT NULL, played_at {number} NOT NULL, received_at {number} NOT NULL,
        names {number} NOT NULL, artist_key {number} NOT NULL,
        artist TEXT NOT NULL, title TEXT NOT NULL, release TEXT, isrc TEXT, external_id TEXT, platform TEXT,
        counted_for {number}
    ) {strict};
    CREATE INDEX pending_listen_user_id ON pending_listen (user_id, slot);
    CREATE INDEX pending_listen_counted_for ON pending_listen (counted_for) WHERE counted_for IS NOT NULL;
    CREATE INDEX pending_listen_names ON pending_listen (user_id, names) WHERE counted_for IS NULL;
    CREATE INDEX pending_listen_waiting ON pending_listen (id) WHERE counted_for IS NULL;
    CREATE INDEX pending_listen_artist ON pending_listen (artist_key, id) WHERE counted_for IS NULL;
    CREATE INDEX pending_listen_isrc ON pending_listen (isrc) WHERE counted_for IS NULL AND isrc IS NOT NULL;
    CREATE INDEX pending_listen_external_id ON pending_listen (external_id)
        WHERE counted_for IS NULL AND external_id IS NOT NULL;
    CREATE TABLE refused_listen (
        user_id {number} NOT NULL, reason TEXT NOT NULL,
        listens {number} NOT NULL, last_at {number} NOT NULL, PRIMARY KEY (user_id, reason)
    ) {keyed};
    CREATE TABLE listen_progress (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), position {number} NOT NULL, after {number} NOT NULL,
        seen {number} NOT NULL
    ) {strict};
    INSERT INTO listen_progress (id, position, after, seen)
        SELECT 1, coalesce(max(position), 0), 0, 0 FROM catalog_change
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    types = {"serial": "BIGSERIAL PRIMARY KEY", "number": "BIGINT", "strict": "", "keyed": ""}
    if sqlite:
        types = {"serial": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "number": "INTEGER"}
        types |= {"strict": "STRICT", "keyed": "WITHOUT ROWID, STRICT"}
    for name, kind in COLUMNS.items():
        db.execute_sql(f"ALTER TABLE play ADD COLUMN {name} {'INTEGER' if sqlite and kind == 'BIGINT' else kind}")
    for statement in TABLES.format(**types).split(";"):
        db.execute_sql(statement)
