"""Changes of the catalog since a cursor, for clients that keep a copy.

Triggers give each change of an artist, album or track the next position, in the order of commits. The table has one row
for each object, with its last position. What happened to the object follows from the other tables.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from musicsvc.errors import Invalid
from musicsvc.store.engine.sql import fetch, is_sqlite

if TYPE_CHECKING:
    import apsw

MOST = 1000
NOUNS: dict[int, Literal["track", "album", "artist"]] = {1: "track", 2: "album", 3: "artist"}
CURSOR = struct.Struct(">8sQ")
UNKNOWN = (
    "Is not a valid cursor: it is malformed or of another database, or an older state was restored since. Begin"
    " again without since: take a cursor, then read the lists."
)
# The comment names the tables that the triggers follow, so that cached responses end when these change.
LAST = """
    SELECT coalesce(max(position), 0) FROM catalog_change
    /* artist album track album_artist album_tag track_artist track_genre track_tag */
"""
SINCE = """
    SELECT c.kind, c.object, c.position, c.created > ?, coalesce(t.id, b.id, a.id), (
        SELECT max(into_id) FROM merged WHERE kind = c.kind AND former_id = c.object AND into_id <> c.object
    )
    FROM catalog_change c
    LEFT JOIN track t ON c.kind = 1 AND t.id = c.object
    LEFT JOIN album b ON c.kind = 2 AND b.id = c.object
    LEFT JOIN artist a ON c.kind = 3 AND a.id = c.object
    WHERE c.position > ? ORDER BY c.position LIMIT ?
"""
EPOCH = "SELECT value FROM change_epoch WHERE id = 1"
# Differs after a dump or an older state was restored, also into the same database, where the table has another number,
# and when another server becomes the primary, which may lack the last changes.
POSTGRES_EPOCH = """
    SELECT value || convert_to(
        concat_ws(' ', system_identifier, timeline_id, pg_database.oid, 'change_epoch'::regclass::oid), 'UTF8'
    ) FROM change_epoch, pg_control_system(), pg_control_checkpoint(), pg_database
    WHERE change_epoch.id = 1 AND datname = current_database()
"""
RENEW = "UPDATE change_epoch SET value = randomblob(16)"

Change = Literal["created", "updated", "deleted", "merged"]


class Changed(NamedTuple):
    """The last state of an object. `into`: the id of the object into which it was merged."""

    noun: Literal["track", "album", "artist"]
    id: int
    change: Change
    into: int | None


class Changes(NamedTuple):
    rows: Sequence[Changed]
    cursor: str
    has_more: bool


def since(cursor: str | None) -> Changes:
    """Return the first changes after the cursor, none without one. Raises Invalid unless it is of this database."""
    epoch, end = _epoch(), last()
    if cursor is None:
        return Changes([], _written(epoch, end), has_more=False)
    position = _read(cursor, epoch)
    if position is None or position > end:
        raise Invalid({"since": UNKNOWN})
    rows = fetch(SINCE, position, position, MOST + 1)
    shown = rows[:MOST]
    end = shown[-1][2] if shown else position
    return Changes([_changed(*row) for row in shown], _written(epoch, end), has_more=len(rows) > MOST)


def last() -> int:
    """Return the position of the last change, or 0."""
    ((position,),) = fetch(LAST)
    return int(position)


def after(position: int, limit: int) -> list[tuple[int, int, int]]:
    """Return kind, id and position of the first changes after a position."""
    return [(row[0], row[1], row[2]) for row in fetch(SINCE, position, position, limit)]


def renew_epoch(database: apsw.Connection) -> None:
    """Let no cursor be valid any more. Does nothing to a database of an older schema."""
    if database.table_exists(None, "change_epoch"):
        database.execute(RENEW)


def _changed(kind: int, number: int, _position: int, is_new: Any, found: int | None, into: int | None) -> Changed:
    if found is None:
        return Changed(NOUNS[kind], number, "deleted" if into is None else "merged", into)
    return Changed(NOUNS[kind], number, "created" if is_new else "updated", None)


def _epoch() -> bytes:
    """Return bytes that differ between databases, and after older data was restored."""
    ((value,),) = fetch(EPOCH if is_sqlite() else POSTGRES_EPOCH)
    return hashlib.sha256(value).digest()[:8]


def _written(epoch: bytes, position: int) -> str:
    return base64.urlsafe_b64encode(CURSOR.pack(epoch, position)).decode().rstrip("=")


def _read(cursor: str, epoch: bytes) -> int | None:
    """Return the position of a cursor, or None if it is malformed or of another epoch."""
    try:
        found, position = CURSOR.unpack(base64.b64decode(cursor + "==", b"-_", validate=True))
    except (binascii.Error, ValueError, struct.error):
        return None
    return position if found == epoch and _written(epoch, position) == cursor else None
