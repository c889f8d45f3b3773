"""Single plays of tracks, albums and artists in the first seconds of a day, for windows that end within a day."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from musicsvc.clock import SECOND
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection

    from musicsvc.store.plays.periods import Window

# CROSS JOIN: SQLite reads the tables in this order, so only the plays of these tracks.
PLAYS = {
    TRACK: "SELECT p.track_id, p.listener_id FROM play p WHERE p.track_id {among}",
    ALBUM: """
        SELECT t.album_id, p.listener_id FROM track t CROSS JOIN play p
        WHERE t.album_id {among} AND p.track_id = t.id
    """,
    ARTIST: """
        SELECT l.artist_id, p.listener_id FROM track_artist l CROSS JOIN play p
        WHERE l.artist_id {among} AND p.track_id = l.track_id
    """,
}
WHOLE_SLOTS = f" AND p.slot / {SLOTS_PER_DAY} = ? AND p.slot < ?"
PART_OF_SLOT = " AND p.slot = ? AND p.played_at < ?"


def of_day(kind: int, ids: Collection[int], window: Window) -> dict[int, list[int]]:
    """Return the listeners of the plays in the seconds that `window` has beside its days, by track/album/artist id.

    A listener is repeated for each play. Ids without plays are absent.
    """
    found: dict[int, list[int]] = defaultdict(list)
    if not window.seconds:
        return found
    slot, rest = divmod(window.ends, SLOT)
    among, value = subjects.among(ids)
    plays = PLAYS[kind].format(among=among)
    rows = fetch(plays + WHOLE_SLOTS, value, window.end, slot)
    if rest >= SECOND:
        rows += fetch(plays + PART_OF_SLOT, value, slot, window.ends)
    for subject, listener in rows:
        found[subject].append(listener)
    return found
