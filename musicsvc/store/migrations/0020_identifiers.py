"""ISRC, number, disc and parental advisory of tracks; UPC and label of albums."""

from peewee import *


def up(migrator, db):
    flag = "INTEGER CHECK (explicit IN (0, 1))" if isinstance(db, SqliteDatabase) else "BOOLEAN"
    for table, column in (
        ("track", "isrc TEXT CHECK (length(isrc) = 12)"),
        ("track", "track_number INTEGER CHECK (track_number BETWEEN 1 AND 9999)"),
        ("track", "disc_number INTEGER CHECK (disc_number BETWEEN 1 AND 999)"),
        ("track", f"explicit {flag}"),
        ("album", "upc TEXT CHECK (length(upc) BETWEEN 12 AND 13)"),
        ("album", "label TEXT CHECK (length(label) BETWEEN 1 AND 255)"),
    ):
        db.execute_sql(f"ALTER TABLE {table} ADD COLUMN {column}")
    db.execute_sql("CREATE INDEX track_isrc ON track (isrc)")
