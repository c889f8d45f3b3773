"""Triggers that note the changes of artists, albums and tracks which the API shows, for `GET /changes`.

Released migrations call `make_triggers`: which changes it notes of the tables that they have never changes.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from peewee import SqliteDatabase

from musicsvc.store.catalog import fields

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
# Tables whose rows are parts of an object: its kind, the column with its id, the columns that the API shows.
PARTS: Mapping[str, tuple[int, str, Collection[str]]] = {
    "track_artist": (TRACK, "track_id", ("track_id", "artist_id", "position")),
    "track_genre": (TRACK, "track_id", ("track_id", "genre_id")),
    "track_tag": (TRACK, "track_id", ("track_id", "tag_id")),
    "album_artist": (ALBUM, "album_id", ("album_id", "artist_id", "position")),
    "album_tag": (ALBUM, "album_id", ("album_id", "tag_id")),
    "track": (ALBUM, "album_id", ("album_id",)),
}
ITSELF = "(SELECT 1) AS one WHERE TRUE"
LAST = "(SELECT coalesce(max(position), 0) FROM catalog_change)"
# SQLite has one writer at a time, so positions are in the order of commits.
SQLITE = """
    CREATE TRIGGER <name> AFTER <event> ON <table> WHEN <condition> BEGIN
        INSERT INTO catalog_change (kind, object, position, created) <rows>
            ON CONFLICT (kind, object) DO UPDATE SET position = excluded.position;
    END
"""
ROW = f"VALUES (<kind>, <object>, {LAST} + 1, CASE WHEN <created> THEN {LAST} + 1 END)"
ROWS = f"SELECT <kind>, <object>, {LAST} + row_number() OVER (), NULL FROM <changed>"  # noqa: S608 - our own names
# What a transaction has added is noted already. Its notes of added names are deleted before its end (name_index.py).
ADDED = " AND NOT EXISTS (SELECT 1 FROM name_change WHERE id = {} AND source = '{}' AND name IS NULL)"
POSTGRES = """
    CREATE OR REPLACE FUNCTION <name>() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO catalog_note SELECT DISTINCT <kind>, <object>, <created> FROM <changed>;
        IF FOUND THEN PERFORM number_changes_at_commit(); END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER <name> AFTER <event> ON <table> <scope> EXECUTE FUNCTION <name>()
"""


def make_triggers(db: Any, *tables: str) -> None:
    """Create the triggers on these tables, by default on all, in place of former ones.

    A migration calls it after it has added a column that the API shows, or before it drops one. Columns that the table
    does not have (yet) are left out, so that the migrations before it work as before.
    """
    sqlite = isinstance(db, SqliteDatabase)
    for trigger in _triggers(db, sqlite=sqlite):
        if not tables or trigger["table"] in tables:
            of_table = "" if sqlite else f" ON {trigger['table']}"
            db.execute_sql(f"DROP TRIGGER IF EXISTS {trigger['name']}{of_table}")
            statement = SQLITE if sqlite else POSTGRES
            for name, value in trigger.items():
                statement = statement.replace(f"<{name}>", value)
            db.execute_sql(statement)


def _triggers(db: Any, *, sqlite: bool) -> Iterator[dict[str, str]]:
    for table, kind in KINDS.items():
        for event in ("INSERT", "DELETE"):
            yield _of_rows(f"{table}_{event}", event, table, kind, "id", sqlite=sqlite, created=event == "INSERT")
        found = {column.name for column in db.get_columns(table)}
        shown = [name for name in fields.shown_columns(table) if name in found]
        yield _of_update(f"{table}_UPDATE", table, shown, kind, "NEW.id", ITSELF, sqlite=sqlite)
    for table, (kind, owner, columns) in PARTS.items():
        for event in ("INSERT", "DELETE"):
            yield _of_rows(f"{table}_part_{event}", event, table, kind, owner, sqlite=sqlite)
        both = f"(SELECT OLD.{owner} AS id UNION SELECT NEW.{owner}) AS owner WHERE id IS NOT NULL"
        yield _of_update(f"{table}_part_UPDATE", table, columns, kind, "id", both, sqlite=sqlite)
    # A track without an image shows that of its album.
    showing = "track WHERE album_id = NEW.id AND image IS NULL"
    yield _of_update("album_image_UPDATE", "album", ("image",), TRACK, "id", showing, sqlite=sqlite)


def _of_rows(
    name: str, event: str, table: str, kind: int, column: str, *, sqlite: bool, created: bool = False
) -> dict[str, str]:
    """Return the parts of a trigger for inserted or deleted rows."""
    row = "NEW" if event == "INSERT" else "OLD"
    noun = next(noun for noun in KINDS if KINDS[noun] == kind)
    added = ADDED.format(f"NEW.{column}", noun) if event == "INSERT" and not created else ""
    return {
        "rows": ROW,
        "name": f"change_{name.lower()}",
        "event": event,
        "table": table,
        "condition": f"{row}.{column} IS NOT NULL{added}",
        "scope": f"REFERENCING {row} TABLE AS changed FOR EACH STATEMENT",
        "kind": str(kind),
        "object": f"{row}.{column}" if sqlite else column,
        "created": "TRUE" if created else "FALSE",
        "changed": f"changed WHERE {column} IS NOT NULL",
    }


def _of_update(
    name: str, table: str, columns: Collection[str], kind: int, column: str, changed: str, *, sqlite: bool
) -> dict[str, str]:
    """Return the parts of a trigger for updates that change one of the columns."""
    names = sorted(columns)
    old, new = (", ".join(f"{row}.{each}" for each in names) for row in ("OLD", "NEW"))
    condition = f"({old}) {'IS NOT' if sqlite else 'IS DISTINCT FROM'} ({new})"
    return {
        "rows": ROW if changed == ITSELF else ROWS,
        "name": f"change_{name.lower()}",
        "event": f"UPDATE OF {', '.join(names)}",
        "table": table,
        "condition": condition,
        "scope": f"FOR EACH ROW WHEN ({condition})",
        "kind": str(kind),
        "object": column,
        "created": "FALSE",
        "changed": changed,
    }
