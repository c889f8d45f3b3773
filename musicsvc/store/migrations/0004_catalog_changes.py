"""Number the changes of artists, albums and tracks. Triggers do it, so changes by programs of 0.1.0 count, too."""

import secrets

from peewee import SqliteDatabase

oldest_program = "0.1.0"

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
# The columns of each object that the API shows, except counters.
COLUMNS = {
    "track": """name, release_date, image, duration, description, album_id, bpm, key, scale, price, currency,
        licensing_type, exclusive_status, exclusive_price, isrc, track_number, disc_number, explicit""",
    "album": "name, image, release_date, description, upc, label",
    "artist": "name, image_small, verified",
}
# Tables whose rows are parts of an object: its kind, the column with its id, the columns that the API shows.
PARTS = {
    "track_artist": (TRACK, "track_id", "track_id, artist_id, position"),
    "track_genre": (TRACK, "track_id", "track_id, genre_id"),
    "track_tag": (TRACK, "track_id", "track_id, tag_id"),
    "album_artist": (ALBUM, "album_id", "album_id, artist_id, position"),
    "album_tag": (ALBUM, "album_id", "album_id, tag_id"),
    "track": (ALBUM, "album_id", "album_id"),
}
# `created`: the position at which the object was made; NULL if it is older than this table.
TABLES = """
    CREATE TABLE catalog_change (
        kind INTEGER NOT NULL, object {number} NOT NULL, position {number} NOT NULL, created {number},
        PRIMARY KEY (kind, object)
    ) {options};
    CREATE UNIQUE INDEX catalog_change_position ON catalog_change (position);
    CREATE TABLE change_epoch (id INTEGER PRIMARY KEY CHECK (id = 1), value {binary} NOT NULL) {strict}
"""
LAST = "(SELECT coalesce(max(position), 0) FROM catalog_change)"
# SQLite has one writer at a time, so positions are in the order of commits.
SQLITE = f"""
    CREATE TRIGGER <name> AFTER <event> ON <table> WHEN <condition> BEGIN
        INSERT INTO catalog_change (kind, object, position, created)
            SELECT <kind>, <object>, {LAST} + <number>, CASE WHEN <created> THEN {LAST} + 1 END FROM <changed>
            ON CONFLICT (kind, object) DO UPDATE SET position = excluded.position;
    END
"""
# On PostgreSQL a transaction notes its changes, and numbers them when it commits, while no other transaction does.
# So positions are in the order of commits, and no transaction waits for one that is not committing. It finds its notes
# by an index: those of earlier ones are deleted, but stay in the table as long as an older snapshot, such as a backup.
POSTGRES = f"""
    CREATE UNLOGGED TABLE catalog_note (
        kind INTEGER NOT NULL, object BIGINT NOT NULL, created BOOLEAN NOT NULL,
        transaction XID8 NOT NULL DEFAULT pg_current_xact_id()
    );
    CREATE INDEX catalog_note_transaction ON catalog_note (transaction);
    CREATE FUNCTION number_catalog_changes() RETURNS trigger LANGUAGE plpgsql
        SET lock_timeout = '10s' SET enable_seqscan = off AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock({0x43484E47});
        WITH note AS (
            DELETE FROM catalog_note WHERE transaction = pg_current_xact_id() RETURNING kind, object, created
        )
        INSERT INTO catalog_change (kind, object, position, created)
            SELECT kind, object, place, CASE WHEN made THEN place END FROM (
                SELECT kind, object, bool_or(created) AS made,
                    {LAST} + row_number() OVER (ORDER BY kind, object) AS place
                FROM note WHERE kind > 0 GROUP BY kind, object
            ) AS noted
            ON CONFLICT (kind, object) DO UPDATE SET position = excluded.position;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER number_changes AFTER INSERT ON catalog_note DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.kind = 0) EXECUTE FUNCTION number_catalog_changes();
    CREATE FUNCTION number_changes_at_commit() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF coalesce(current_setting('musicsvc.changing', TRUE), '') = '' THEN
            PERFORM set_config('musicsvc.changing', 'yes', TRUE);
            INSERT INTO catalog_note VALUES (0, 0, FALSE);
        END IF;
    END $$
"""
POSTGRES_TRIGGER = """
    CREATE FUNCTION <name>() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO catalog_note SELECT DISTINCT <kind>, <object>, <created> FROM <changed>;
        IF FOUND THEN PERFORM number_changes_at_commit(); END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER <name> AFTER <event> ON <table> <scope> EXECUTE FUNCTION <name>()
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    if sqlite:
        db.execute_sql(TABLES.format(number="INTEGER", binary="BLOB", options="WITHOUT ROWID, STRICT", strict="STRICT"))
    else:
        db.execute_sql(TABLES.format(number="BIGINT", binary="BYTEA", options="", strict=""))
        db.execute_sql(POSTGRES)
    db.execute_sql(f"INSERT INTO change_epoch VALUES (1, {db.param})", (secrets.token_bytes(16),))
    for trigger in _triggers(sqlite):
        statement = SQLITE if sqlite else POSTGRES_TRIGGER
        for name, value in trigger.items():
            statement = statement.replace(f"<{name}>", value)
        db.execute_sql(statement)


def _triggers(sqlite):
    for table, kind in KINDS.items():
        for event in ("INSERT", "DELETE"):
            yield _of_rows(sqlite, f"{table}_{event}", event, table, kind, "id", created=event == "INSERT")
        itself = "(SELECT 1) AS one WHERE TRUE"
        yield _of_update(sqlite, f"{table}_UPDATE", table, COLUMNS[table], kind, "NEW.id", itself)
    for table, (kind, owner, columns) in PARTS.items():
        for event in ("INSERT", "DELETE"):
            yield _of_rows(sqlite, f"{table}_part_{event}", event, table, kind, owner)
        both = f"(SELECT OLD.{owner} AS id UNION SELECT NEW.{owner}) AS owner WHERE id IS NOT NULL"
        yield _of_update(sqlite, f"{table}_part_UPDATE", table, columns, kind, "id", both)
    # A track without an image shows that of its album.
    showing = "track WHERE album_id = NEW.id AND image IS NULL"
    yield _of_update(sqlite, "album_image_UPDATE", "album", "image", TRACK, "id", showing)


def _of_rows(sqlite, name, event, table, kind, column, *, created=False):
    """Return the parts of a trigger for inserted or deleted rows."""
    row = "NEW" if event == "INSERT" else "OLD"
    return {
        "name": f"change_{name.lower()}",
        "event": event,
        "table": table,
        "condition": f"{row}.{column} IS NOT NULL",
        "scope": f"REFERENCING {row} TABLE AS changed FOR EACH STATEMENT",
        "kind": str(kind),
        "object": f"{row}.{column}" if sqlite else column,
        "number": "1",
        "created": "TRUE" if created else "FALSE",
        "changed": "(SELECT 1) AS one WHERE TRUE" if sqlite else f"changed WHERE {column} IS NOT NULL",
    }


def _of_update(sqlite, name, table, columns, kind, column, changed):
    """Return the parts of a trigger for updates that change one of the columns."""
    old, new = (", ".join(f"{row}.{name.strip()}" for name in columns.split(",")) for row in ("OLD", "NEW"))
    condition = f"({old}) {'IS NOT' if sqlite else 'IS DISTINCT FROM'} ({new})"
    return {
        "name": f"change_{name.lower()}",
        "event": f"UPDATE OF {columns}",
        "table": table,
        "condition": condition,
        "scope": f"FOR EACH ROW WHEN ({condition})",
        "kind": str(kind),
        "object": column,
        "number": "row_number() OVER ()",
        "created": "FALSE",
        "changed": changed,
    }
