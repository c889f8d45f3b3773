"""Two-hour play counts (12 parts of a day) of often played tracks, albums and artists.

Two-hour counts speed up reading a window that ends within a day. A track, album or artist with at least LEAST_PLAYS
plays on a day has a row for each part of that day, also for parts without plays. Tracks, albums and artists with fewer
plays, and days whose single plays were deleted, have no rows.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.plays import daily, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import listeners, monthly, tables
from musicsvc.store.plays.rollups.tables import Key, New
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

PER_DAY = 12
SLOTS = SLOTS_PER_DAY // PER_DAY
LEAST_PLAYS = 128  # on a day
COMPACT_EVERY = 512  # plays of a day, between compactions of its parts
# The subject of a play, and the plays of some subjects. CROSS JOIN: SQLite reads the tables in this order, so only
# the plays of these tracks.
PLAYS = {
    TRACK: ("p.track_id", "play p WHERE p.track_id {among}"),
    ALBUM: ("t.album_id", "track t CROSS JOIN play p WHERE t.album_id {among} AND p.track_id = t.id"),
    ARTIST: ("l.artist_id", "track_artist l CROSS JOIN play p WHERE l.artist_id {among} AND p.track_id = l.track_id"),
}
OF_DAY = f"p.slot / {SLOTS_PER_DAY} = ?"  # the expression of the index play_of_day
PARTS = f"SELECT {{subject}}, p.slot / {SLOTS}, {{listeners}} FROM {{plays}} AND {OF_DAY} GROUP BY 1, 2"  # noqa: S608 - constants
POPULAR = f"SELECT {daily.SUBJECT} FROM {{rows}} AND plays >= {LEAST_PLAYS}"  # noqa: S608 - constants
ADD = "UPDATE play_part SET plays = plays + ?, listeners = {listeners} WHERE kind = ? AND subject = ? AND part = ?"
INSERT = """
    INSERT INTO play_part (kind, subject, part, plays, listeners) {rows}
    ON CONFLICT (kind, subject, part) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners
"""
TYPES = ("int", "bigint", "int", "bigint", "bytea")
DELETE = "DELETE FROM play_part WHERE kind = ? AND subject = ? AND part >= ? AND part < ?"
READ = "SELECT part, listeners FROM play_part WHERE kind = ? AND subject = ? AND part >= ? AND part < ?"
COMPACT = "UPDATE play_part SET listeners = ? WHERE kind = ? AND subject = ? AND part = ?"


def add(new: New, large: Mapping[Key, int]) -> None:
    """Add new plays to the two-hour counts. `new` has packed plays by (day, kind), then by track, album or artist id.

    `large`: the day's total plays by (day, kind, id). Only rows with few plays may be absent.
    """
    rows: list[tuple[object, ...]] = []
    begun: dict[tuple[int, int], list[int]] = defaultdict(list)
    full: list[Key] = []
    for (day, kind, subject), plays in large.items():
        if plays < LEAST_PLAYS:
            continue
        some = new[day, kind][subject]
        fresh = len(some) // tables.PLAY
        if plays - fresh < LEAST_PLAYS:
            begun[day, kind].append(subject)
            continue
        rows += [(len(packed) // listeners.WIDTH, packed, kind, subject, part) for part, packed in _split(day, some)]
        if plays % COMPACT_EVERY < fresh:
            full.append((day, kind, subject))
    run_many(ADD.format(listeners=dialect.concat_blob("listeners", "?")), rows)
    for (day, kind), ids in begun.items():
        dialect.insert_many(INSERT, TYPES, [(*key, *counts) for key, counts in count(day, kind, ids).items()])
    for key in full:
        _compact(*key)


def _split(day: int, new: bytes) -> list[tuple[int, bytes]]:
    """Split the packed plays of a day into (two-hour part, packed listener ids), ordered by part."""
    hours = new[tables.HOUR :: tables.PLAY]
    if _part(min(hours)) == _part(max(hours)):  # most often, as plays are reported soon
        return [(day * PER_DAY + _part(hours[0]), tables.split(new)[1])]
    found: dict[int, bytes] = defaultdict(bytes)
    for listener, hour, _ in tables.PACKED_PLAY.iter_unpack(new):
        found[day * PER_DAY + _part(hour)] += listeners.pack([listener])
    return sorted(found.items())


def _part(hour: int) -> int:
    """Return the two-hour part of its day, 0 to 11, that contains an hour of the week (0 is Monday 00:00 UTC)."""
    return hour % 24 * PER_DAY // 24


def _compact(day: int, kind: int, subject: int) -> None:
    found = fetch(READ, kind, subject, day * PER_DAY, (day + 1) * PER_DAY)
    smaller = [(listeners.merge([packed]), packed, part) for part, packed in found]
    run_many(COMPACT, [(merged, kind, subject, part) for merged, packed, part in smaller if merged != packed])


def count(day: int, kind: int, ids: Collection[int]) -> dict[Key, tuple[int, bytes]]:
    """Recount a day from single plays. Return (number of plays, packed listener ids) for each two-hour part.

    The keys of the result are (kind, track/album/artist id, part).
    """
    parts = range(day * PER_DAY, (day + 1) * PER_DAY)
    counts: dict[Key, tuple[int, bytes]] = {(kind, each, part): (0, b"") for each in ids for part in parts}
    subject, plays = PLAYS[kind]
    among, value = subjects.among(ids)
    statement = PARTS.format(
        subject=subject, plays=plays.format(among=among), listeners=dialect.gather("p.listener_id")
    )
    for each, part, some in fetch(statement, value, day):
        heard = dialect.gathered(some)
        counts[kind, each, part] = len(heard), listeners.merge([listeners.pack(heard)])
    return counts


def rebuild(days: Mapping[int, Mapping[int, Collection[int]]]) -> None:
    """Recount the two-hour counts after daily counts changed. `days`: the days to recount, by kind, then by id."""
    kept_from = monthly.watermark().kept_from
    for kind, of_kind in days.items():
        by_day: dict[int, list[int]] = defaultdict(list)
        for subject, some in of_kind.items():
            for day in some:
                by_day[day].append(subject)
        for day, ids in sorted(by_day.items()):
            replace(day, kind, ids, counted=day >= kept_from)


def replace(day: int, kind: int, ids: Collection[int], *, counted: bool = True) -> None:
    """Delete the two-hour counts of tracks, albums or artists on a day. If `counted`, recount those with many plays."""
    run_many(DELETE, [(kind, subject, day * PER_DAY, (day + 1) * PER_DAY) for subject in ids])
    found = popular(day, kind, ids) if counted else []
    if found:
        dialect.insert_many(INSERT, TYPES, [(*key, *counts) for key, counts in count(day, kind, found).items()])


def popular(day: int, kind: int, ids: Collection[int]) -> list[int]:
    """Return the ids of those tracks, albums or artists that have at least LEAST_PLAYS plays on the day."""
    return [subject for (subject,) in daily.fetch_rows(POPULAR, [day], kind, ids)]
