"""Tracks, albums and artists that were merged into others: the names and codes by which these are found, too."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from musicsvc.store.engine.sql import fetch, in_list, run
from musicsvc.store.models import Merged, MergedCredit

TRACK, ALBUM, ARTIST = 1, 2, 3  # as in store/plays/subjects.py
FOLLOW = "UPDATE merged SET into_id = ? WHERE kind = ? AND into_id = ?"
ALBUMS = "UPDATE merged SET album_id = ? WHERE kind = 1 AND album_id = ?"
CREDITS = """
    INSERT INTO merged_credit (merged_id, artist_id)
    SELECT merged_id, CAST(? AS BIGINT) FROM merged_credit WHERE artist_id = ? ON CONFLICT DO NOTHING
"""
NO_CREDITS = "DELETE FROM merged_credit WHERE artist_id = ?"
FIND = """
    SELECT m.id, m.into_id, m.name, m.code, m.external_id, m.imported_for, m.album_id, a.name
    FROM merged m LEFT JOIN album a ON a.id = m.album_id WHERE m.kind = ? AND m.{column} {among}
"""
ARTISTS = """
    SELECT c.merged_id, a.id, a.name FROM merged_credit c JOIN artist a ON a.id = c.artist_id WHERE c.merged_id {among}
"""
ARTIST_NAMES = """
    SELECT m.name, a.name FROM merged m JOIN artist a ON a.id = m.into_id
    WHERE m.kind = 3 AND m.name {among} ORDER BY m.id
"""


class Former(NamedTuple):
    """A row that was merged into another (`into`), as imports find it.

    `album_id` and `album`: of a track. `artists`: as in `add`, their names by id.
    """

    id: int
    into: int
    name: str
    code: str | None
    external_id: str | None
    imported_for: int
    album_id: int | None
    album: str | None
    artists: Mapping[int, str] = {}


def find(
    kind: int, *, name: Collection[str] = (), external_id: Collection[str] = (), code: Collection[str] = ()
) -> list[Former]:
    """Return what was merged and has one of these names, external ids or codes. The last merged comes first."""
    found: dict[int, Former] = {}
    for column, values in (("name", name), ("external_id", external_id), ("code", code)):
        if values:
            among, chosen = in_list(values)
            rows = fetch(FIND.format(column=column, among=among), kind, chosen)
            found |= {row[0]: Former(*row) for row in rows}
    if not found:
        return []
    credited: dict[int, dict[int, str]] = defaultdict(dict)
    among, chosen = in_list([*found])
    for former, artist, called in fetch(ARTISTS.format(among=among), chosen):
        credited[former][artist] = called
    return [found[each]._replace(artists=credited[each]) for each in sorted(found, reverse=True)]


def artist_names(names: Collection[str]) -> dict[str, str]:
    """Return the names of the artists into which those with these names were merged, by former name."""
    among, values = in_list(names)
    return dict(fetch(ARTIST_NAMES.format(among=among), values)) if names else {}


def add(kind: int, former: int, into: int, values: dict[str, Any], artists: Collection[int] = ()) -> None:
    """Record that a row was merged into another. Its names and codes, and those that led to it, lead to the other.

    `values`: its name and its codes. `artists`: the artists of a track, or the first artist of an album. With `former`
    equal to `into`, the row is also found as it was before.
    """
    run(FOLLOW, into, kind, former)
    number = Merged.insert(kind=kind, former=former, into=into, **values).execute()
    if artists:
        MergedCredit.insert_many([{"merged": number, "artist": artist} for artist in artists]).execute()
    if kind == ALBUM:
        run(ALBUMS, into, former)
    if kind == ARTIST:
        run(CREDITS, into, former)
        run(NO_CREDITS, former)


def forget(kind: int, into: int) -> None:
    """Forget what was merged into a row that is deleted."""
    Merged.delete().where(Merged.kind == kind, Merged.into == into).execute()


def targets(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the id of the row into which each of these was merged, for those that were, by former id."""
    rows = Merged.select(Merged.former, Merged.into).where(Merged.kind == kind, Merged.former.in_(list(ids)))
    return dict(rows.tuples().iterator()) if ids else {}
