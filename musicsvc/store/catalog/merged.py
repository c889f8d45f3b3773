"""Tracks, albums and artists that were merged into others: the names and codes by which these are found, too."""

from collections.abc import Collection
from typing import Any

from musicsvc.store.engine.sql import run
from musicsvc.store.models import Merged, MergedCredit

TRACK, ALBUM, ARTIST = 1, 2, 3  # as in store/plays/subjects.py
FOLLOW = "UPDATE merged SET into_id = ? WHERE kind = ? AND into_id = ?"
ALBUMS = "UPDATE merged SET album_id = ? WHERE kind = 1 AND album_id = ?"
CREDITS = "INSERT INTO merged_credit (artist_id, kind, id) SELECT ?, kind, id FROM merged_credit WHERE artist_id = ?"
NO_CREDITS = "DELETE FROM merged_credit WHERE artist_id = ?"
FORGET = "DELETE FROM merged WHERE kind = ? AND into_id = ?"
FORGET_CREDITS = """
    DELETE FROM merged_credit WHERE kind = ? AND id IN (SELECT id FROM merged WHERE kind = ? AND into_id = ?)
"""


def add(kind: int, former: int, into: int, values: dict[str, Any], artists: Collection[int] = ()) -> None:
    """Record that a row was merged into another. What was merged into the row leads to the other, too.

    `values`: its name and its codes. `artists`: the artists of a track, or the first artist of an album.
    """
    run(FOLLOW, into, kind, former)
    Merged.insert(kind=kind, id=former, into=into, **values).execute()
    if artists:
        MergedCredit.insert_many([{"artist": artist, "kind": kind, "id": former} for artist in artists]).execute()
    if kind == ALBUM:
        run(ALBUMS, into, former)
    if kind == ARTIST:
        run(f"{CREDITS} ON CONFLICT DO NOTHING", into, former)
        run(NO_CREDITS, former)


def forget(kind: int, into: int) -> None:
    """Forget what was merged into a row that is deleted."""
    run(FORGET_CREDITS, kind, kind, into)
    run(FORGET, kind, into)


def targets(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the id of the row into which each of these was merged, for those that were, by former id."""
    columns = Merged.select(Merged.id, Merged.into).where(Merged.kind == kind, Merged.id.in_(list(ids)))
    return dict(columns.tuples().iterator()) if ids else {}
