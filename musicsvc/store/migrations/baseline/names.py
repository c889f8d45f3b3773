"""Search indexes of the names of accounts, artists, albums, tracks and public playlists.

Triggers note the changed names of all but accounts (`musicsvc/store/engine/name_index.py`).
"""

from peewee import *

NOTED = ("artist", "album", "track", "playlist")
SOURCES = ("account", *NOTED)
SQLITE_INDEX = """
    CREATE VIRTUAL TABLE {source}_search
        USING fts5 (name, content = '', contentless_delete = 1, tokenize = 'trigram case_sensitive 1')
"""
# The first characters: one of two characters that marks the beginning of a word, and one to three of the name.
POSTGRES_INDEX = """
    CREATE TABLE {source}_search (key BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL);
    CREATE INDEX {source}_search_3 ON {source}_search (left(name, 3), key);
    CREATE INDEX {source}_search_4 ON {source}_search (left(name, 4), key);
    CREATE INDEX {source}_search_5 ON {source}_search (left(name, 5), key)
"""
SQLITE_TRIGGERS = """
    CREATE TRIGGER {source}_name_added AFTER INSERT ON {source} BEGIN
        INSERT INTO name_change VALUES ('{source}', NEW.id, NULL);
    END;
    CREATE TRIGGER {source}_name_changed AFTER UPDATE OF {columns} ON {source}
    WHEN ({old}) IS NOT ({new}) BEGIN
        INSERT INTO name_change VALUES ('{source}', OLD.id, OLD.name);
    END;
    CREATE TRIGGER {source}_name_removed AFTER DELETE ON {source} BEGIN
        INSERT INTO name_change VALUES ('{source}', OLD.id, OLD.name);
    END
"""
POSTGRES_FUNCTIONS = """
    CREATE FUNCTION name_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO name_change SELECT TG_TABLE_NAME, id, NULL FROM changed;
        RETURN NULL;
    END $$;
    CREATE FUNCTION name_removed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO name_change SELECT TG_TABLE_NAME, id, name FROM changed;
        RETURN NULL;
    END $$;
    CREATE FUNCTION name_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO name_change VALUES (TG_TABLE_NAME, OLD.id, OLD.name);
        RETURN NULL;
    END $$
"""
POSTGRES_TRIGGERS = """
    CREATE TRIGGER name_added AFTER INSERT ON {source} REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION name_added();
    CREATE TRIGGER name_removed AFTER DELETE ON {source} REFERENCING OLD TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION name_removed();
    CREATE TRIGGER name_changed AFTER UPDATE OF {columns} ON {source}
        FOR EACH ROW WHEN (({old}) IS DISTINCT FROM ({new})) EXECUTE FUNCTION name_changed()
"""


def create(db):
    # The notes of a transaction are deleted before its end, so a crash loses none.
    if isinstance(db, SqliteDatabase):
        db.execute_sql("CREATE TABLE name_change (source TEXT NOT NULL, id INTEGER NOT NULL, name TEXT) STRICT")
        index, triggers = SQLITE_INDEX, SQLITE_TRIGGERS
    else:
        db.execute_sql("CREATE UNLOGGED TABLE name_change (source TEXT NOT NULL, id BIGINT NOT NULL, name TEXT)")
        db.execute_sql(POSTGRES_FUNCTIONS)
        index, triggers = POSTGRES_INDEX, POSTGRES_TRIGGERS
    for source in SOURCES:
        db.execute_sql(index.format(source=source))
    for source in NOTED:
        columns = ("name", "public") if source == "playlist" else ("name",)
        old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
        db.execute_sql(triggers.format(source=source, columns=", ".join(columns), old=old, new=new))
    if not isinstance(db, SqliteDatabase):
        _index_trigrams(db)


def _index_trigrams(db):
    """Without the extension, or the right to it, search reads every name (docs/development/search.md)."""
    try:
        with db.savepoint():
            db.execute_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            for source in SOURCES:
                db.execute_sql(f"CREATE INDEX {source}_search_name ON {source}_search USING gin (name gin_trgm_ops)")
    except DatabaseError:
        pass
