"""What is kept up from plays, in the transaction of the plays that it counts: for tracks, albums and artists."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import daily, listeners, monthly, weekly

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from musicsvc.store.plays.rollups.daily import Key

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
SLOTS_A_DAY = 2880
SUBJECTS = """
    SELECT t.id, t.album_id, a.artist_id FROM track t LEFT JOIN track_artist a ON a.track_id = t.id WHERE t.id {among}
"""
COUNT = """
    INSERT INTO track_plays (track_id, plays) {rows}
    ON CONFLICT (track_id) DO UPDATE SET plays = track_plays.plays + excluded.plays
"""


class Counted(NamedTuple):
    """A play that was taken: its track, its half minute, its listener."""

    track: int
    slot: int
    listener: int


def add(plays: Iterable[tuple[int, int, int]]) -> None:
    """Count plays that are new, as (track, slot, listener), for their tracks, albums and artists."""
    heard: dict[tuple[int, int], bytes] = {}
    for track, slot, listener in plays:
        key = slot // SLOTS_A_DAY, track
        heard[key] = heard.get(key, b"") + listener.to_bytes(listeners.WIDTH, "little")
    subjects = subjects_of({track for _, track in heard})
    counts: dict[int, int] = defaultdict(int)
    days: dict[Key, bytes] = defaultdict(bytes)
    for (day, track), packed in heard.items():
        counts[track] += len(packed) // listeners.WIDTH
        for kind, subject in subjects[track]:
            days[day, kind, subject] += packed
    daily.append(daily.DAYS, days)
    monthly.append(days)
    weekly.append(days)
    dialect.insert_many(COUNT, ("bigint", "bigint"), sorted(counts.items()))


def subjects_of(tracks: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """What a play of each track counts for, as (kind, id): the track, its album, its artists."""
    found: dict[int, list[tuple[int, int]]] = {}
    condition, ids = dialect.in_list(tracks)
    for track, album, artist in fetch(SUBJECTS.format(among=condition), ids):
        if track not in found:
            found[track] = [(TRACK, track)] if album is None else [(TRACK, track), (ALBUM, album)]
        if artist is not None:
            found[track].append((ARTIST, artist))
    return found
