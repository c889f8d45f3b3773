"""Read the content of a dump: all single plays by day, and the tables of the tracks, albums and artists played.

Use it in one transaction. The database builds the lines of plays, which takes a third of the time that rows would take.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.engine.sql import fetch, stream_rows
from musicsvc.store.models import Play, TrackPlays
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks

PLAYS_PER_PART = 2_000_000  # of a day that has more; takes a few seconds to write
PLAYS_PER_READ = 20_000  # about 1.6 MB
# In the order of the primary key, which needs no sorting.
LINES = """
    SELECT count(*), string_agg(
        '{"track_id":' || track_id || ',"played_at":' || played_at
        || ',"duration_ms":' || coalesce(CAST(duration_ms AS TEXT), 'null') || ',"listener":' || listener_id || '}',
        '\n'
    ) FROM (
        SELECT * FROM play WHERE slot >= ? AND slot < ? ORDER BY slot, track_id, listener_id, client_key
    ) AS plays
"""
# Of tables, by name, with the columns of a dump. Deleted tracks are those whose plays still count, for their album and
# artists too.
TABLES = {
    "tracks": """
        SELECT id AS track_id, name, duration AS duration_ms, album_id FROM track
        UNION ALL SELECT track_id, NULL, max(duration), max(CASE kind WHEN 2 THEN subject END)
        FROM deleted_track GROUP BY track_id ORDER BY 1
    """,
    "track_artists": """
        SELECT track_id, artist_id, position FROM track_artist
        UNION ALL SELECT track_id, subject, NULL FROM deleted_track WHERE kind = 3 ORDER BY 1, 2
    """,
    "albums": "SELECT id AS album_id, name, release_date FROM album ORDER BY id",
    "album_artists": "SELECT album_id, artist_id, position FROM album_artist ORDER BY album_id, artist_id",
    "artists": "SELECT id AS artist_id, name FROM artist ORDER BY id",
}


class Summary(NamedTuple):
    """`last_play`: the time of the newest play, or None. `kept_from`: plays before this day (since 1970) were deleted.

    `expected`: the number of plays, perhaps with deleted ones.
    """

    last_play: int | None
    kept_from: int
    expected: int


class Part(NamedTuple):
    """The plays of a day (since 1970-01-01) in some `slots`. `width`: the number of slots to read at once."""

    day: int
    number: int
    slots: range
    width: int


def summarize() -> Summary:
    newest = Play.select(fn.MAX(Play.slot))
    last = Play.select(fn.MAX(Play.played_at)).where(Play.slot == newest).scalar()
    expected = TrackPlays.select(fn.SUM(TrackPlays.plays)).scalar()
    return Summary(last, blocks.progress().kept_from, int(expected or 0))


def parts(kept_from: int) -> Iterator[Part]:
    """Yield the parts of all days with plays from the day `kept_from` on.

    The parts depend on nothing but the plays of the day.
    """
    slot = kept_from * SLOTS_PER_DAY
    while (following := Play.select(fn.MIN(Play.slot)).where(Play.slot >= slot).scalar()) is not None:
        day = following // SLOTS_PER_DAY
        first, slot = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
        count = Play.select().where(Play.slot >= first, Play.slot < slot).count()
        several = -(-count // PLAYS_PER_PART)
        cuts = [first + SLOTS_PER_DAY * number // several for number in range(several + 1)]
        for number, ends in enumerate(pairwise(cuts)):
            yield Part(day, number, range(*ends), max(1, SLOTS_PER_DAY * PLAYS_PER_READ // count))


def lines(part: Part) -> Iterator[tuple[int, bytes]]:
    """Yield the plays of a part in pieces: their number, and a line of JSON for each."""
    for first in part.slots[:: part.width]:
        ((count, text),) = fetch(LINES, first, min(first + part.width, part.slots.stop))
        if count:
            yield count, text.encode() + b"\n"


def rows(table: str) -> Iterator[Any]:
    return stream_rows(TABLES[table])
