"""The index of the account search, and external ids of accounts."""

from peewee import *

from musicsvc.store.accounts import user_search


def up(migrator, db):
    db.execute_sql("ALTER TABLE account ADD COLUMN external_id TEXT")
    db.execute_sql("CREATE UNIQUE INDEX account_external_id ON account (external_id)")
    if isinstance(db, SqliteDatabase):
        options = "content = '', contentless_delete = 1, tokenize = 'trigram case_sensitive 1'"
        db.execute_sql(f"CREATE VIRTUAL TABLE account_search USING fts5 (name, {options})")
    else:
        db.execute_sql('CREATE TABLE account_search (key BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL)')
        for signs in (3, 4, 5):  # a mark of two characters, and one to three of the name
            db.execute_sql(f"CREATE INDEX account_search_{signs} ON account_search (left(name, {signs}), key)")
    # The index is derived data: if its rules change, a later migration rebuilds it.
    user_search.rebuild()
    if not isinstance(db, SqliteDatabase):
        _index_trigrams(db)


def _index_trigrams(db):
    """Without the extension, or the right to it, search reads every name (docs/search.md)."""
    try:
        with db.savepoint():
            db.execute_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            db.execute_sql("CREATE INDEX account_search_name ON account_search USING gin (name gin_trgm_ops)")
    except DatabaseError:
        pass
