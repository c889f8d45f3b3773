"""Counts of all tracks and of the tracks of each genre in blocks, and an index in the order of the latter."""

from importlib import import_module

from peewee import *

lists = import_module("musicsvc.store.migrations.0012_list_blocks")

# As LISTS of 0012: number: (table, owner of the list, the columns by which its rows are sorted into blocks, an id).
LISTS = {15: ("track", "0", "id", "0", "id"), 16: ("track_genre", "genre_id", "track_id", "0", "track_id")}


def up(migrator, db):
    db.execute_sql("CREATE INDEX track_genre_genre_id_track_id ON track_genre (genre_id, track_id)")
    db.execute_sql("DROP INDEX track_genre_genre_id")
    for number, columns in LISTS.items():
        for statement, names in lists.SQLITE if isinstance(db, SqliteDatabase) else lists.POSTGRES:
            db.execute_sql(lists.filled_in(statement, names, number, *columns))
