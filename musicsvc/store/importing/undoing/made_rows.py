"""Delete the rows that an import created, except rows that are in use, such as a track in a playlist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from peewee import ForeignKeyField

from musicsvc.store import models
from musicsvc.store.accounts import user_search
from musicsvc.store.engine.dialect import in_list, is_sqlite
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.importing.batches import lock_imports
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Track,
    TrackArtist,
    TrackGenre,
    TrackPlays,
    TrackTag,
    User,
)
from musicsvc.store.plays.rollups import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peewee import Model

AT_ONCE = 500
MADE = """
    SELECT item FROM import_item WHERE run_id = ? AND kind = ? AND changes IS NULL AND item < ?
    ORDER BY item DESC LIMIT ?
"""
OTHERS = "SELECT item, run_id FROM import_item WHERE kind = ? AND item {among} AND run_id <> ? ORDER BY run_id"
FORGET = "DELETE FROM import_item WHERE run_id = ? AND kind = ? AND item {among}"
# What is deleted along with a row; rows of all other tables that refer to it keep it.
OWN: dict[type[Model], tuple[type[Model], ...]] = {
    Track: (TrackArtist, TrackGenre, TrackTag),
    Album: (AlbumArtist,),
}
NOUNS = {
    "account": "accounts",
    "album_artist": "albums",
    "album_tag": "albums",
    "collection_track": "collections",
    "playlist_invite": "invitations",
    "playlist_track": "playlists",
    "track_artist": "tracks",
    "track_genre": "tracks",
    "track_like": "likes",
    "track_repost": "reposts",
    "track_tag": "tracks",
}


class Taken(NamedTuple):
    """The result of one transaction of an undo, for one table. `kept` has the reason why a row was kept, by row id."""

    table: str
    lowest: int  # the lowest id that was looked at; the next transaction takes ids below it
    restored: int  # the number of rows that were undone
    kept: dict[int, str]


Step: TypeAlias = Callable[[int, int], "Taken | None"]


def take_back(table: type[Model], import_id: int, below: int) -> Taken | None:
    """Delete a batch of rows with ids below `below` that the import created. Return None if no such row remains."""
    lock_imports()
    name = table_name(table)
    ids = [item for (item,) in fetch(MADE, import_id, name, below, AT_ONCE)]
    if not ids:
        return None
    if table is Track:
        tables.lock()  # plays name their track without a foreign key
    columns: Any = table
    rows: Any = table.select(columns.id).where(columns.id.in_(ids))
    rows = rows if is_sqlite() else rows.for_update("FOR UPDATE")
    present = {row[0] for row in rows.tuples().iterator()}
    kept = _reasons(table, ids, import_id) if present else {}
    gone = [each for each in ids if each not in kept]
    if table is User:
        for account in User.select(User.id, User.display_name).where(User.id.in_(gone)).tuples().iterator():
            user_search.remove(*account)
    table.delete().where(columns.id.in_(gone)).execute()
    forget(import_id, name, gone)
    return Taken(name, ids[-1], len(present - kept.keys()), kept)


def table_name(table: type[Model]) -> str:
    name: str = table._meta.table_name  # noqa: SLF001 - Peewee's documented access to a table's names
    return name


def forget(import_id: int, name: str, ids: Sequence[int]) -> None:
    """Delete the records that the import created or changed these rows. `name`: the table of the rows."""
    among, values = in_list(ids)
    run(FORGET.format(among=among), import_id, name, values)


def _reasons(table: type[Model], ids: Sequence[int], import_id: int) -> dict[int, str]:
    """Return the reasons why rows cannot be deleted, by row id, such as `playlists, likes` for a track in use."""
    found: dict[int, dict[str, None]] = defaultdict(dict)
    for item, reason in _references(table, ids):
        found[item][reason] = None
    among, values = in_list(ids)
    for item, other in fetch(OTHERS.format(among=among), table_name(table), values, import_id):
        found[item][f"import {other}"] = None
    return {item: ", ".join(some) for item, some in found.items()}


def _references(table: type[Model], ids: Sequence[int]) -> Iterable[tuple[int, str]]:
    for other in models.tables():
        for link in links(other, table):
            for (item,) in other.select(link).distinct().where(link.in_(ids)).tuples().iterator():
                yield item, noun(other)
    if table is Track:
        played = TrackPlays.select(TrackPlays.track).where(TrackPlays.track.in_(ids))
        yield from ((item, "plays") for (item,) in played.tuples().iterator())
    if table is User:
        in_use = User.password_hash.is_null(is_null=False) | User.api_access | User.admin
        used = User.select(User.id).where(User.id.in_(ids), in_use)
        yield from ((item, "its owner") for (item,) in used.tuples().iterator())


def noun(table: type[Model]) -> str:
    """Return the word for rows of the table in the reason why a row that they refer to is kept."""
    name = table_name(table)
    return NOUNS.get(name, f"{name}s")


def links(other: type[Model], table: type[Model]) -> list[Any]:
    """Return the foreign keys from `other` to `table` that prevent rows of `table` from being deleted by an undo."""
    fields: Any = other._meta.sorted_fields  # noqa: SLF001 - Peewee's documented access
    links = [each for each in fields if isinstance(each, ForeignKeyField) and each.rel_model is table]
    return [] if other in OWN.get(table, ()) else links
