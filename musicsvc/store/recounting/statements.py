"""The SQL that recounts figures from dumped plays, shared by all engines.

One query returns everything about the subjects, in rows of one shape, ordered by subject: the section, which says what
the row is about, seven numbers and a name.
"""

from collections.abc import Sequence
from typing import NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.histograms import FIRST_HOUR, HOURS, SKIP_BEFORE_MS
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.recounting.dialects import Dialect

# Sections.
NAME, COUNTS, COMPLETION, BY_HOUR, BY_DAY, TRACKS, ALBUMS = range(7)
NUMBERS = "abcdefg"
TOP = 10
ALL = 2**31
# A track without a name was deleted: its plays count on, but it is no subject and in no list.
SUBJECTS = {
    TRACK: "SELECT track_id AS subject, name FROM {tracks} AS t WHERE name IS NOT NULL",
    ALBUM: "SELECT album_id AS subject, name FROM {albums} AS b",
    ARTIST: "SELECT artist_id AS subject, name FROM {artists} AS a",
}
MEMBERS = {
    TRACK: "SELECT track_id AS subject, track_id FROM {tracks} AS t",
    ALBUM: "SELECT album_id AS subject, track_id FROM {tracks} AS t WHERE album_id IS NOT NULL",
    ARTIST: "SELECT artist_id AS subject, track_id FROM {track_artists} AS l",
}
TRACKS_OF_ALBUM = "SELECT album_id AS subject, track_id AS item, name FROM {tracks} AS t WHERE name IS NOT NULL"
TRACKS_OF_ARTIST = """
    SELECT l.artist_id AS subject, t.track_id AS item, t.name AS name
    FROM {track_artists} AS l JOIN {tracks} AS t ON t.track_id = l.track_id WHERE t.name IS NOT NULL
"""
ALBUMS_OF_ARTIST = """
    SELECT l.artist_id AS subject, b.album_id AS item, b.name AS name
    FROM {album_artists} AS l JOIN {albums} AS b ON b.album_id = l.album_id
"""
PLAYS = "(SELECT track_id, {instant} AS instant, duration_ms, listener FROM {source} AS s)"
NO_PLAYS = """(SELECT CAST(0 AS BIGINT) AS track_id, CAST(0 AS BIGINT) AS instant, CAST(0 AS BIGINT) AS duration_ms,
    CAST(0 AS BIGINT) AS listener WHERE 1 = 0)"""
CHOSEN = "SELECT * FROM ({rows}) AS r WHERE {condition}"
WITHIN = "CASE WHEN p.instant >= {start} AND p.instant < {end} THEN 1 ELSE 0 END"
# One row for each listener of a subject, so that distinct listeners are rows and need no function of the engine.
HEARD = """
    SELECT m.subject AS subject, p.listener AS listener, COUNT(*) AS ever, MIN(p.instant) AS began,
        SUM({within}) AS inside, SUM({earlier}) AS earlier
    FROM {plays} AS p JOIN ({members}) AS m ON m.track_id = p.track_id GROUP BY m.subject, p.listener
"""
MEASURED = """
    SELECT m.subject AS subject, CASE WHEN p.duration_ms >= t.duration_ms THEN 100 ELSE {percent} END AS percent,
        CASE WHEN p.duration_ms < {skip} AND p.duration_ms * 2 < t.duration_ms THEN 1 ELSE 0 END AS skipped
    FROM {played} AS p JOIN ({members}) AS m ON m.track_id = p.track_id
    JOIN (SELECT track_id, duration_ms FROM {tracks} AS t WHERE duration_ms > 0) AS t ON t.track_id = p.track_id
    WHERE p.duration_ms IS NOT NULL
"""
OF_HOURS = """
    SELECT m.subject AS subject, ({hour} + {first_hour}) % {hours} AS hour
    FROM {played} AS p JOIN ({members}) AS m ON m.track_id = p.track_id
"""
OF_DAYS = """
    SELECT m.subject AS subject, {day} AS day, p.listener AS listener, COUNT(*) AS number
    FROM {played} AS p JOIN ({members}) AS m ON m.track_id = p.track_id GROUP BY m.subject, {day}, p.listener
"""
RANKED = """
    SELECT l.subject AS subject, l.item AS item, l.name AS name, COALESCE(s.ever, 0) AS ever,
        COALESCE(s.inside, 0) AS inside, COALESCE(s.listeners, 0) AS listeners,
        COUNT(*) OVER (PARTITION BY l.subject) AS size,
        ROW_NUMBER() OVER (
            PARTITION BY l.subject ORDER BY COALESCE(s.inside, 0) DESC, COALESCE(s.ever, 0) DESC, l.item DESC
        ) AS place
    FROM ({listed}) AS l LEFT JOIN (
        SELECT h.subject AS item, SUM(h.ever) AS ever, SUM(h.inside) AS inside,
            SUM(CASE WHEN h.inside > 0 THEN 1 ELSE 0 END) AS listeners
        FROM ({heard}) AS h GROUP BY h.subject
    ) AS s ON s.item = l.item
"""
COUNTED = (
    "SUM(h.ever)",
    "COUNT(*)",
    "SUM(h.inside)",
    "SUM(CASE WHEN h.inside > 0 THEN 1 ELSE 0 END)",
    "SUM(h.earlier)",
    "SUM(CASE WHEN h.earlier > 0 THEN 1 ELSE 0 END)",
    "SUM(CASE WHEN h.began >= {start} AND h.began < {end} THEN 1 ELSE 0 END)",
)


class Row(NamedTuple):
    """A row of the result. `numbers`: seven, whose meaning depends on the section."""

    subject: int
    section: int
    numbers: Sequence[int]
    name: str


class Sources(NamedTuple):
    """SQL for the rows of the files, to put after FROM. `played`: plays of the days of the window."""

    plays: str
    played: str
    tracks: str
    albums: str
    artists: str
    track_artists: str
    album_artists: str


def build(kind: int, ids: Sequence[int], window: Window, sources: Sources, dialect: Dialect) -> str:
    """Return the query for tracks, albums or artists (`kind`). Without `ids`: for all of them."""
    return _Query(kind, ids, window, sources, dialect).text()


def plays(dialect: Dialect, source: str) -> str:
    """Return SQL for the plays in files, to put after FROM: `instant` is in microseconds since 1970."""
    return PLAYS.format(instant=dialect.micros.format("played_at"), source=source)


class _Query:
    def __init__(self, kind: int, ids: Sequence[int], window: Window, sources: Sources, dialect: Dialect) -> None:
        self._kind, self._window, self._dialect = kind, window, dialect
        self._sources = sources._asdict()
        self._condition = f"subject IN ({', '.join(map(str, ids))})" if ids else "1 = 1"

    def text(self) -> str:
        sections = [self._names(), self._counts(), self._completion(), self._hours(), self._days()]
        if self._kind == ALBUM:
            sections.append(self._ranking(TRACKS, TRACK, TRACKS_OF_ALBUM, ALL))
        elif self._kind == ARTIST:
            sections.append(self._ranking(TRACKS, TRACK, TRACKS_OF_ARTIST, TOP))
            sections.append(self._ranking(ALBUMS, ALBUM, ALBUMS_OF_ARTIST, TOP))
        return f"SELECT * FROM ({' UNION ALL '.join(sections)}) AS found ORDER BY subject, section, a"  # noqa: S608 - our own SQL

    def _names(self) -> str:
        return _section(NAME, f"({self._chosen(SUBJECTS[self._kind])}) AS s", name="s.name")

    def _counts(self) -> str:
        heard = self._heard(self._chosen(MEMBERS[self._kind]))
        numbers = [each.format(start=self._window.starts, end=self._window.ends) for each in COUNTED]
        return _section(COUNTS, f"({heard}) AS h GROUP BY subject", *numbers)

    def _completion(self) -> str:
        percent = self._dialect.quotient.format("(p.duration_ms * 100)", "t.duration_ms")
        measured = self._of_members(MEASURED, percent=percent, skip=SKIP_BEFORE_MS)
        return _section(
            COMPLETION, f"({measured}) AS m GROUP BY subject, percent, skipped", "percent", "skipped", "COUNT(*)"
        )

    def _hours(self) -> str:
        hour = self._dialect.quotient.format("p.instant", HOUR)
        hours = self._of_members(OF_HOURS, hour=hour, first_hour=FIRST_HOUR, hours=HOURS)
        return _section(BY_HOUR, f"({hours}) AS h GROUP BY subject, hour", "hour", "COUNT(*)")

    def _days(self) -> str:
        days = self._of_members(OF_DAYS, day=self._dialect.quotient.format("p.instant", DAY))
        return _section(BY_DAY, f"({days}) AS d GROUP BY subject, day", "day", "SUM(number)", "COUNT(*)")

    def _ranking(self, section: int, kind: int, listed: str, count: int) -> str:
        """Rank the tracks or albums (`kind`) that `listed` selects for each subject."""
        chosen = self._chosen(listed)
        items = f"SELECT item FROM ({chosen}) AS i"  # noqa: S608 - our own SQL
        members = CHOSEN.format(rows=MEMBERS[kind].format(**self._sources), condition=f"subject IN ({items})")
        ranked = RANKED.format(listed=chosen, heard=self._heard(members))
        numbers = "place", "item", "ever", "inside", "listeners", "size"
        return _section(section, f"({ranked}) AS r WHERE place <= {count}", *numbers, name="name")

    def _chosen(self, rows: str) -> str:
        return CHOSEN.format(rows=rows.format(**self._sources), condition=self._condition)

    def _of_members(self, template: str, **values: object) -> str:
        return template.format(members=self._chosen(MEMBERS[self._kind]), **self._sources, **values)

    def _heard(self, members: str) -> str:
        within, earlier = (
            WITHIN.format(start=each.starts, end=each.ends) for each in (self._window, self._window.before)
        )
        return HEARD.format(members=members, within=within, earlier=earlier, plays=self._sources["plays"])


def _section(section: int, source: str, *numbers: str, name: str = "''") -> str:
    """Return SQL for the rows of a section. `source` goes after FROM, and begins with a table of subjects."""
    padded = [*numbers, *["0"] * (len(NUMBERS) - len(numbers))]
    columns = ", ".join(f"CAST({number} AS BIGINT) AS {letter}" for number, letter in zip(padded, NUMBERS, strict=True))
    return f"SELECT CAST(subject AS BIGINT) AS subject, {section} AS section, {columns}, {name} AS name FROM {source}"  # noqa: S608 - our own SQL
