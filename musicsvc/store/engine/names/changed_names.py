"""Keeps the search indexes of artists, albums, tracks and public playlists up to date.

Triggers insert each name that a transaction adds, changes or deletes into the table `name_change`.
Before COMMIT, the transaction updates the indexes and empties this table, so other transactions never see its rows.
"""

from collections.abc import Iterable

from musicsvc.store.engine.dialect import in_list, is_sqlite
from musicsvc.store.engine.names.name_index import NameIndex
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.engine.tables import current_tables

ARTISTS = NameIndex("artist_search")
ALBUMS = NameIndex("album_search")
TRACKS = NameIndex("track_search")
PLAYLISTS = NameIndex("playlist_search")
INDEXES = {"artist": ARTISTS, "album": ALBUMS, "track": TRACKS, "playlist": PLAYLISTS}  # by table
INDEXED = {"playlist": "public"}  # the rows that are indexed, if not all
NOTES = "name_change"
TAKE = f"DELETE FROM {NOTES} RETURNING source, id, name"  # noqa: S608 - a constant
NAMES = "SELECT id, name FROM {source} WHERE {indexed} AND id {among} ORDER BY id"
COUNT = "SELECT (SELECT count(*) FROM {source} WHERE {indexed}), (SELECT count(*) FROM {index})"
NEXT = "SELECT id, name FROM {source} WHERE {indexed} AND id > ? ORDER BY id LIMIT ?"
BATCH = 10_000


def index_changed_names(statements: Iterable[str]) -> None:
    """Update the indexes if a statement may have changed a name. `statements`: all SQL of the transaction."""
    tables = current_tables()
    if all(INDEXES.keys().isdisjoint(tables.changed(each)) for each in statements) or NOTES not in tables.names:
        return
    former: dict[str, list[tuple[int, str]]] = {}
    changed: dict[str, set[int]] = {}
    for source, row_id, name in fetch(TAKE):
        changed.setdefault(source, set()).add(row_id)
        if name is not None:
            former.setdefault(source, []).append((row_id, name))
    for source, ids in changed.items():
        INDEXES[source].remove(former.get(source, ()))
        among, values = in_list(ids)
        INDEXES[source].add(fetch(NAMES.format(source=source, indexed=_indexed(source), among=among), values))


def differences() -> list[str]:
    """Return one line for each index whose number of names differs from the number of rows in its table."""
    found = []
    for source, index in INDEXES.items():
        ((rows, names),) = fetch(COUNT.format(source=source, indexed=_indexed(source), index=index.table))
        if rows != names:
            found.append(f"search: the index of the names of {source}s has {names} entries, not {rows}")
    return found


def rebuild() -> None:
    """Index all names again, in a write transaction."""
    if not is_sqlite():
        run(f"LOCK TABLE {', '.join(INDEXES)} IN SHARE MODE")
    run(f"DELETE FROM {NOTES}")  # noqa: S608 - a constant
    for source, index in INDEXES.items():
        run(f"DELETE FROM {index.table}")  # noqa: S608 - our own names
        last = 0
        while names := fetch(NEXT.format(source=source, indexed=_indexed(source)), last, BATCH):
            index.add(names)
            last = names[-1][0]


def _indexed(source: str) -> str:
    return INDEXED.get(source, "TRUE")
