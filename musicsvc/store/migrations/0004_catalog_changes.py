"""Number the changes of artists, albums and tracks. Triggers do it, so changes by programs of 0.1.0 count, too."""

import secrets

from peewee import SqliteDatabase

from musicsvc.store.catalog.change_triggers import make_triggers

oldest_program = "0.1.0"

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


def up(migrator, db):
    if isinstance(db, SqliteDatabase):
        db.execute_sql(TABLES.format(number="INTEGER", binary="BLOB", options="WITHOUT ROWID, STRICT", strict="STRICT"))
    else:
        db.execute_sql(TABLES.format(number="BIGINT", binary="BYTEA", options="", strict=""))
        db.execute_sql(POSTGRES)
    db.execute_sql(f"INSERT INTO change_epoch VALUES (1, {db.param})", (secrets.token_bytes(16),))
    make_triggers(db)
