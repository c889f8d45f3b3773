"""Single plays of tracks, albums and artists in the first seconds of a day, for windows that end within a day."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection

    from musicsvc.store.plays.periods import Window

# CROSS JOIN: SQLite reads the tables in this order, so only the plays of these tracks.
PLAYS = {
    TRACK: ("p.track_id", "play p WHERE p.track_id {among}"),
    ALBUM: ("t.album_id", "track t CROSS JOIN play p WHERE t.album_id {among} AND p.track_id = t.id"),
    ARTIST: ("l.artist_id", "track_artist l CROSS JOIN play p WHERE l.artist_id {among} AND p.track_id = l.track_id"),
}
# One row for each subject: thousands of rows would take longer than to read them in the database.
LISTENERS = "SELECT {subject}, {listeners} FROM {plays} AND {time} GROUP BY {subject}"
WHOLE_SLOTS = f"p.slot / {SLOTS_PER_DAY} = ? AND p.slot < ?"  # the expression of the index play_of_day
PART_OF_SLOT = "p.slot = ? AND p.played_at < ?"


def of_day(kind: int, ids: Collection[int], window: Window) -> dict[int, list[int]]:
    """Return the listeners of the plays in the seconds that `window` has beside its days, by track/album/artist id.

    A listener is repeated for each play. Ids without plays are absent.
    """
    found: dict[int, list[int]] = defaultdict(list)
    if window.seconds:
        slot, rest = divmod(window.ends, SLOT)
        _add(found, kind, ids, WHOLE_SLOTS, (window.end, slot))
        if rest:
            _add(found, kind, ids, PART_OF_SLOT, (slot, window.ends))
    return found


def _add(found: dict[int, list[int]], kind: int, ids: Collection[int], time: str, values: tuple[int, int]) -> None:
    among, value = subjects.among(ids)
    for each, some in fetch(query(kind, among, time), value, *values):
        found[each] += dialect.gathered(some)


def query(kind: int, among: str, time: str) -> str:
    """Return the statement for the listeners of subjects. `time`: WHOLE_SLOTS or PART_OF_SLOT."""
    subject, plays = PLAYS[kind]
    listeners = dialect.gather("p.listener_id")
    return LISTENERS.format(subject=subject, listeners=listeners, plays=plays.format(among=among), time=time)
