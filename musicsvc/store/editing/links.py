"""Let what refers to a track, album or artist refer to another one, into which it is merged."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

MOST_TAGS = 20  # of a track or album
PARAMETER = re.compile(":(source|target)")
# On something that has both, the other takes the earlier position.
CREDITS = (
    """
    UPDATE {noun}_artist SET position = (
        SELECT o.position FROM {noun}_artist o WHERE o.{noun}_id = {noun}_artist.{noun}_id AND o.artist_id = :source
    ) WHERE artist_id = :target AND position > (
        SELECT o.position FROM {noun}_artist o WHERE o.{noun}_id = {noun}_artist.{noun}_id AND o.artist_id = :source
    )
    """,
    """
    INSERT INTO {noun}_artist ({noun}_id, artist_id, position)
    SELECT {noun}_id, :target, position FROM {noun}_artist WHERE artist_id = :source ON CONFLICT DO NOTHING
    """,
)
DELETED = (
    """
    INSERT INTO deleted_track (kind, subject, track_id, duration)
    SELECT kind, :target, track_id, duration FROM deleted_track WHERE kind = {kind} AND subject = :source
    ON CONFLICT DO NOTHING
    """,
    "DELETE FROM deleted_track WHERE kind = {kind} AND subject = :source",
)
# A share link that shows both shows the other once.
SHARED = (
    """
    DELETE FROM report_link_subject WHERE subject = :source
    AND report_link_id IN (SELECT id FROM report_link WHERE kind = {kind})
    AND report_link_id IN (SELECT report_link_id FROM report_link_subject WHERE subject = :target)
    """,
    """
    UPDATE report_link_subject SET subject = :target WHERE subject = :source
    AND report_link_id IN (SELECT id FROM report_link WHERE kind = {kind})
    """,
)
LACKS = """
    FROM {table} f WHERE f.{owner} = :source
    AND NOT EXISTS (SELECT 1 FROM {table} o WHERE o.{owner} = :target AND o.{member} = f.{member})
"""
TAGS = f"""
    INSERT INTO {{table}} ({{owner}}, {{member}}) SELECT :target, f.{{member}} {LACKS}
    ORDER BY f.{{member}} LIMIT {MOST_TAGS} - (SELECT count(*) FROM {{table}} WHERE {{owner}} = :target)
"""  # noqa: S608 - our own names
ALBUM_ARTISTS = """
    INSERT INTO album_artist (album_id, artist_id, position)
    SELECT :target, f.artist_id, f.position + (
        SELECT coalesce(max(position), -1) + 1 FROM album_artist WHERE album_id = :target
    )
""" + LACKS.format(table="album_artist", owner="album_id", member="artist_id")  # noqa: S608 - our own names
GENRES = "INSERT INTO track_genre (track_id, genre_id) SELECT :target, f.genre_id " + LACKS.format(
    table="track_genre", owner="track_id", member="genre_id"
)
GIVEN = """
    UPDATE {table} SET track_id = :target WHERE track_id = :source
    AND user_id NOT IN (SELECT user_id FROM {table} WHERE track_id = :target)
"""
ENTRIES = "UPDATE {table} SET track_id = :target WHERE track_id = :source"
COUNTED = """
    UPDATE track SET likes_count = (SELECT count(*) FROM track_like WHERE track_id = :target),
        reposts_count = (SELECT count(*) FROM track_repost WHERE track_id = :target)
    WHERE id = :target
"""


class Link(NamedTuple):
    """Rows that move: their name, the SQL after SELECT … for them, and the statements that move them."""

    name: str
    rows: str
    moves: Sequence[str]


def _all_of(table: str, owner: str) -> str:
    return f"FROM {table} WHERE {owner} = :source"


def _tags(noun: str) -> Link:
    names = {"table": f"{noun}_tag", "owner": f"{noun}_id", "member": "tag_id"}
    return Link("tags", LACKS.format(**names), [TAGS.format(**names)])


def _credits(noun: str) -> Link:
    moves = [each.format(noun=noun) for each in CREDITS]
    return Link(f"{noun}s", _all_of(f"{noun}_artist", "artist_id"), moves)


def _given(name: str, table: str) -> Link:
    lacks = LACKS.format(table=table, owner="track_id", member="user_id")
    return Link(name, lacks, [GIVEN.format(table=table)])


def _entries(name: str, table: str) -> Link:
    return Link(name, _all_of(table, "track_id"), [ENTRIES.format(table=table)])


LINKS: Mapping[int, Sequence[Link]] = {
    ARTIST: [_credits("track"), _credits("album")],
    ALBUM: [
        Link("tracks", _all_of("track", "album_id"), ["UPDATE track SET album_id = :target WHERE album_id = :source"]),
        Link("artists", LACKS.format(table="album_artist", owner="album_id", member="artist_id"), [ALBUM_ARTISTS]),
        _tags("album"),
    ],
    TRACK: [
        _given("likes", "track_like"),
        _given("reposts", "track_repost"),
        _entries("playlist_entries", "playlist_track"),
        _entries("collection_entries", "collection_track"),
        Link("genres", LACKS.format(table="track_genre", owner="track_id", member="genre_id"), [GENRES]),
        _tags("track"),
    ],
}
AFTER: Mapping[int, Sequence[str]] = {ARTIST: DELETED, ALBUM: DELETED, TRACK: [COUNTED]}


def count(kind: int, source: int, target: int) -> dict[str, int]:
    """Return how many rows move, by their names. Those without rows are left out."""
    found = {link.name: _perform(f"SELECT count(*) {link.rows}", source, target, fetch) for link in LINKS[kind]}
    return {name: rows[0][0] for name, rows in found.items() if rows[0][0]}


def move(kind: int, source: int, target: int) -> None:
    """Move all rows that refer to `source` to `target`. Rows that `target` has already stay behind."""
    for statement in (*(move for link in LINKS[kind] for move in link.moves), *AFTER[kind], *SHARED):
        _perform(statement.format(kind=kind), source, target, run)


def _perform(statement: str, source: int, target: int, by: Any) -> Any:
    ids = {"source": source, "target": target}
    values = [ids[name] for name in PARAMETER.findall(statement)]
    return by(PARAMETER.sub("?", statement), *values)
