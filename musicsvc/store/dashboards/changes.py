"""Tracks of an account whose plays grew or fell most, and those that have reached a milestone, read in one query."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from musicsvc.store.dashboards.catalog_search import MANAGED
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights.listening import milestones
from musicsvc.store.plays.ingest import AHEAD
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window, day_of
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.reader import PART_OF_SLOT, WHOLE_SLOTS, Reader
from musicsvc.store.plays.subjects import TRACK

FIRST_READ, FACTOR = 100, 20  # rows of each list; more if too few of them are the account's
TRACKS = "FROM artist a JOIN track_artist l ON l.artist_id = a.id WHERE a.manager_id = ?"
RANGE = f"SELECT COUNT(*), MIN(l.track_id), MAX(l.track_id) {TRACKS}"
IDS = f"SELECT DISTINCT l.track_id {TRACKS} ORDER BY 1"
# One sum has the plays in the window and, from bit BITS on, those in the window before: half the time of two sums.
BITS = 31
PACKED = {"plays": ("{plays}", "0"), "before": (f"{{plays}} * {1 << BITS}", "0"), "later": ("0", "{plays}")}
ROWS = f"SELECT {counts.SUBJECT} AS track, {{plays}} FROM {{rows}}"  # noqa: S608 - our own names
SINGLE = "SELECT p.track_id AS track, {plays} FROM play p WHERE {time} AND p.track_id {among}"
CHANGED = """
    WITH changed AS MATERIALIZED (
        SELECT track, packed & {last} AS plays, packed >> {bits} AS before, later FROM (
            SELECT track, CAST(SUM(packed) AS BIGINT) AS packed, {later} AS later
            FROM ({parts}) AS parts GROUP BY track
        ) AS sums
    )
"""
SUM_LATER = "CAST(SUM(later) AS BIGINT)"
# The number of a milestone has more digits than the plays before the window.
LISTS = f"""
    SELECT * FROM (
        SELECT 1 AS list, track, plays, before, 0 AS total FROM changed WHERE plays > before
        ORDER BY plays - before DESC, track DESC LIMIT ?
    ) AS up
    UNION ALL SELECT * FROM (
        SELECT 2, track, plays, before, 0 FROM changed WHERE plays < before
        ORDER BY before - plays DESC, track DESC LIMIT ?
    ) AS down
    UNION ALL SELECT * FROM (
        SELECT 3, c.track, c.plays, c.before, t.plays - c.later
        FROM changed c JOIN track_plays t ON t.track_id = c.track
        WHERE t.plays - c.later >= {milestones.FIRST} AND c.plays > 0
        AND LENGTH(CAST(t.plays - c.later AS TEXT)) > LENGTH(CAST(t.plays - c.later - c.plays AS TEXT))
        ORDER BY LENGTH(CAST(t.plays - c.later AS TEXT)) DESC, c.plays DESC, c.track DESC LIMIT ?
    ) AS reached
"""  # noqa: S608 - our own numbers
OWN = "SELECT t.id FROM track t WHERE t.id {among} AND {managed}"


class Change(NamedTuple):
    """A track with its plays in the window and in the window before."""

    track: int
    plays: int
    before: int


class Changes(NamedTuple):
    """The tracks whose plays grew or fell most, and those that have passed the 100th, 1,000th … play in the window."""

    up: list[Change]
    down: list[Change]
    passed: list[int]


def read(user_id: int, window: Window, now: int, most: int) -> Changes:
    """Return the changes of an account's tracks, at most `most` of each kind. Milestones: the highest first."""
    ((count, first, last),) = fetch(RANGE, user_id)
    if not count:
        return Changes([], [], [])
    dense = last - first < sql.DENSE * count
    tracks = range(first, last + 1) if dense else [track for (track,) in fetch(IDS, user_id)]
    parts, values = _parts(tracks, window, now)
    limit = FIRST_READ
    while parts:
        later = SUM_LATER if any("AS later" in part for part in parts) else "0"
        statement = (
            CHANGED.format(parts=" UNION ALL ".join(parts), last=(1 << BITS) - 1, bits=BITS, later=later) + LISTS
        )
        rows = fetch(statement, *values, limit, limit, limit)
        own = _own(user_id, {row[1] for row in rows}) if dense else {row[1] for row in rows}
        lists = [[row for row in rows if row[0] == number] for number in (1, 2, 3)]
        found = [[row for row in some if row[1] in own][:most] for some in lists]
        if all(len(some) == most or len(every) < limit for some, every in zip(found, lists, strict=True)):
            up, down, passed = found
            compared = window.compared_with is not None
            return Changes(
                [Change(*row[1:4]) for row in up if compared],
                [Change(*row[1:4]) for row in down if compared],
                [row[1] for row in passed],
            )
        limit *= FACTOR
    return Changes([], [], [])


def _parts(tracks: Any, window: Window, now: int) -> tuple[list[str], list[Any]]:
    """Return SQL for the plays of the tracks in the window, in the one before, and after the window, and its values."""
    later = Window("", window.end, max(window.end, day_of(now + AHEAD) + 1))
    parts: list[str] = []
    values: list[Any] = []
    for column, of in zip(PACKED, (window, window.before, later), strict=True):
        if periods := Reader(of, all_time=False).periods if of.days else []:
            bounds = (TRACK << counts.ID_BITS) + tracks[0], (TRACK << counts.ID_BITS) + tracks[-1] + 1
            rows, some = (
                counts.rows_between(periods, *bounds)
                if isinstance(tracks, range)
                else counts.rows(periods, TRACK, tracks)
            )
            parts.append(ROWS.format(plays=_packed(column, "plays", later), rows=rows))
            values += some
    if window.before.seconds:
        for time, instants in _last_day(window.before):
            among, ids = sql.in_list(tracks) if not isinstance(tracks, range) else ("BETWEEN ? AND ?", None)
            parts.append(SINGLE.format(plays=_packed("before", "1", later), time=time, among=among))
            values += [*instants, *([tracks[0], tracks[-1]] if ids is None else [ids])]
    return parts, values


def _packed(column: str, plays: str, later: Window) -> str:
    """Return SQL for the columns to sum: `packed` and, unless the window ends today, `later`."""
    packed, after = (each.format(plays=plays) for each in PACKED[column])
    return f"{packed} AS packed" + (f", {after} AS later" if later.days else "")


def _last_day(window: Window) -> Iterable[tuple[str, tuple[int, ...]]]:
    slot, rest = divmod(window.ends, SLOT)
    yield WHOLE_SLOTS, (window.end, window.end * SLOTS_PER_DAY, slot)
    if rest:
        yield PART_OF_SLOT, (slot, window.ends)


def _own(user_id: int, tracks: set[int]) -> set[int]:
    if not tracks:
        return set()
    among, ids = sql.in_list(sorted(tracks))
    statement = OWN.format(among=among, managed=MANAGED[TRACK].format(id="t.id"))
    return {track for (track,) in fetch(statement, ids, user_id)}
