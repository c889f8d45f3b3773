"""Delete the rows that an import created, except rows that are in use, such as a track in a playlist."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from peewee import CompositeKey, ForeignKeyField, Model, fn

from musicsvc.store import models
from musicsvc.store.accounts import user_search
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.editing import deletions, notices
from musicsvc.store.engine.sql import compiled, lock_rows
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    ImportItem,
    PendingListen,
    Track,
    TrackArtist,
    TrackGenre,
    TrackPlays,
    TrackTag,
    User,
)
from musicsvc.store.plays import counting, subjects
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.security.security_events import Actor

AT_ONCE = 500
# What is deleted along with a row; rows of all other tables that refer to it keep it.
OWN: dict[type[Model], tuple[type[Model], ...]] = {
    Track: (TrackArtist, TrackGenre, TrackTag),
    Album: (AlbumArtist,),
}
PLAYED_ALONG = (Album, Artist)  # plays of deleted tracks may still count for them
EDITABLE = (Track, *PLAYED_ALONG)
NOUNS = {
    "account": "accounts",
    "album_artist": "albums",
    "album_tag": "albums",
    "collection_track": "collections",
    "import_task": "uploads",
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


@dataclass(slots=True)
class Going:
    """Rows and plays that an undo takes back: ids of rows by table, numbers of plays by track."""

    rows: dict[type[Model], set[int]] = field(default_factory=dict)
    plays: Counter[int] = field(default_factory=Counter)


Step: TypeAlias = Callable[[int, int], "Taken | None"]


def take_back(table: type[Model], now: int, actor: Actor, import_id: int, below: int) -> Taken | None:
    """Delete a batch of rows with ids below `below` that the import created. Return None if no such row remains.

    `now`, `actor`: of the events of other accounts that manage a deleted track.
    """
    lock_imports()
    made = runs.items(import_id, table, ImportItem.changes.is_null()).where(ImportItem.item < below)
    ids = [item for (item,) in made.order_by(ImportItem.item.desc()).limit(AT_ONCE).tuples().iterator()]
    if not ids:
        return None
    if table in EDITABLE:
        counting.lock()  # plays name their track without a foreign key
    columns: Any = table
    present = set(existing(table, ids, locking=True))
    kept = reasons(table, sorted(present), import_id, Going()) if present else {}
    gone = [each for each in ids if each not in kept]
    if table is User:
        for account in User.select(User.id, User.display_name).where(User.id.in_(gone)).tuples().iterator():
            user_search.remove(*account)
    if table is Track:
        notices.log_undone(gone, import_id, now=now, actor=actor)
        _let_wait([each for each in gone if each in present])
    if table in PLAYED_ALONG:
        # A name that was split does not mean its other parts alone from now on.
        deletions.remove(subjects.KINDS[runs.table_name(table)], gone, forget=False)
    else:
        table.delete().where(columns.id.in_(gone)).execute()
    runs.replace(import_id, table, gone, {})
    return Taken(runs.table_name(table), ids[-1], len(present - kept.keys()), kept)


def existing(table: type[Model], ids: Sequence[int], *, locking: bool = False) -> list[int]:
    """Return those of the ids that rows of the table have. With `locking`, lock these rows on PostgreSQL."""
    columns: Any = table
    rows: Any = table.select(columns.id).where(columns.id.in_(ids))
    rows = lock_rows(rows, deleting=True) if locking else rows
    return [row[0] for row in rows.tuples().iterator()]


def reasons(table: type[Model], ids: Sequence[int], import_id: int, going: Going) -> dict[int, str]:
    """Return the reasons why rows cannot be deleted, by row id, such as `playlists, likes` for a track in use.

    References from the rows in `going` are no reason.
    """
    found: dict[int, dict[str, None]] = defaultdict(dict)
    for item, reason in _references(table, ids, going):
        found[item][reason] = None
    for item, other in _others(ids, runs.table_name(table), import_id):
        found[item][f"import {other}"] = None
    return {item: ", ".join(some) for item, some in found.items()}


@compiled
def _others(ids: Collection[int], kind: str, import_id: int) -> Any:
    """Select the rows with these ids that other imports have created or changed, and these imports."""
    others = ImportItem.select(ImportItem.item, ImportItem.run).order_by(ImportItem.run)
    return others.where(ImportItem.kind == kind, ImportItem.run != import_id, ImportItem.item.in_(ids))


def _references(table: type[Model], ids: Sequence[int], going: Going) -> Iterable[tuple[int, str]]:
    for other in models.tables():
        owner, key = _undone_with(other)
        for link in links(other, table):
            for item, *by in _referring(ids, link=link, key=key):
                if not by or by[0] not in going.rows.get(owner, ()):
                    yield item, noun(other)
    if table is Track:
        played = TrackPlays.select(TrackPlays.track, TrackPlays.plays).where(TrackPlays.track.in_(ids))
        waited = _waited(ids)
        for item, plays in played.tuples().iterator():
            if plays > going.plays[item] + waited[item]:
                yield item, "plays"
    if table in EDITABLE:
        yield from ((item, "edited") for (item,) in _edited(ids, table=table))
    if table is User:
        in_use = User.password_hash.is_null(is_null=False) | User.api_access | User.admin
        used = User.select(User.id).where(User.id.in_(ids), in_use)
        yield from ((item, "its owner") for (item,) in used.tuples().iterator())


@compiled
def _referring(ids: Collection[int], *, link: Any, key: tuple[Any, ...]) -> Any:
    return link.model.select(link, *key).distinct().where(link.in_(ids))


@compiled
def _edited(ids: Collection[int], *, table: Any) -> Any:
    return table.select(table.id).where(table.id.in_(ids), table.edited_at.is_null(is_null=False))


def _waited(tracks: Sequence[int]) -> Counter[int]:
    """Return the numbers of single plays of tracks that are listens which had waited for them."""
    track, kept_from = PendingListen.counted_for, blocks.progress().kept_from * SLOTS_PER_DAY
    rows = PendingListen.select(track, fn.count(PendingListen.id)).where(track.in_(tracks)).group_by(track)
    rows = rows.where(PendingListen.slot >= kept_from)
    return Counter(dict(rows.tuples().iterator()))


def _let_wait(tracks: Sequence[int]) -> None:
    """Let the listens wait again that had waited for these tracks. They keep their places among own plays."""
    listen = PendingListen
    of = listen.select(listen.user, listen.slot, listen.counted_for).where(listen.counted_for.in_(tracks))
    rows = [*of.tuples().iterator()]
    ids = listeners.find([listeners.account_key(account) for account, *_ in rows])
    plays = [(slot, track, ids[listeners.account_key(account)], WITHOUT_ID) for account, slot, track in rows]
    withdrawal.remove(plays)
    listen.update(counted_for=listen.counted_for * -1).where(listen.counted_for.in_(tracks)).execute()


def _undone_with(table: type[Model]) -> tuple[type[Model], tuple[Any, ...]]:
    """Return the table with whose rows an undo takes back rows of `table`, and the column with their ids, if any."""
    for owner, owned in OWN.items():
        if table in owned:
            return owner, tuple(each for each in _foreign_keys(table) if each.rel_model is owner)
    key: Any = table._meta.primary_key  # noqa: SLF001 - Peewee's documented access
    return table, () if isinstance(key, CompositeKey) else (key,)


def noun(table: type[Model]) -> str:
    """Return the word for rows of the table in the reason why a row that they refer to is kept."""
    name = runs.table_name(table)
    return NOUNS.get(name, f"{name}s")


def links(other: type[Model], table: type[Model]) -> list[Any]:
    """Return the foreign keys from `other` to `table` that prevent rows of `table` from being deleted by an undo."""
    found = [each for each in _foreign_keys(other) if each.rel_model is table]
    return [] if other in OWN.get(table, ()) else found


def _foreign_keys(table: type[Model]) -> list[Any]:
    fields: Any = table._meta.sorted_fields  # noqa: SLF001 - Peewee's documented access
    return [each for each in fields if isinstance(each, ForeignKeyField)]
