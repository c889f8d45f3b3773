"""The SQL that recounts figures from single plays, shared by all engines and by this database.

One query returns everything about the subjects, in rows of one shape, ordered by subject: the section, which says what
the row is about, eight numbers and a name.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.insights.listening.milestones import FACTOR, FIRST
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.histograms import FIRST_HOUR, HOURS, SKIP_BEFORE_MS
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.recounting.engines import Dialect

# Sections.
NAME, COUNTS, COMPLETION, BY_HOUR, BY_DAY, TRACKS, ALBUMS, HEARD_FIRST, MILESTONES = range(9)
FIGURES = NAME, COUNTS, COMPLETION, BY_HOUR, BY_DAY
RANKINGS = {TRACK: (), ALBUM: (TRACKS,), ARTIST: (TRACKS, ALBUMS)}
WITHOUT_DURATION, WITHOUT_LENGTH = -1, -2  # in place of the percentage of a play
NUMBERS = "abcdefgh"
TOP = 10
ALL = 2**31
REACHED = ", ".join(str(FIRST * FACTOR**power) for power in range(16))  # milestones, more than any database has
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
# What a ranking of a subject lists, by its section.
LISTED = {
    (ALBUM, TRACKS): "SELECT album_id AS subject, track_id AS item, name FROM {tracks} AS t WHERE name IS NOT NULL",
    (ARTIST, TRACKS): """
        SELECT l.artist_id AS subject, t.track_id AS item, t.name AS name
        FROM {track_artists} AS l JOIN {tracks} AS t ON t.track_id = l.track_id WHERE t.name IS NOT NULL
    """,
    (ARTIST, ALBUMS): """
        SELECT l.artist_id AS subject, b.album_id AS item, b.name AS name
        FROM {album_artists} AS l JOIN {albums} AS b ON b.album_id = l.album_id
    """,
}
PLAYS = "(SELECT track_id, {instant} AS instant, duration_ms, listener FROM {source} AS s)"
NO_PLAYS = """(SELECT CAST(0 AS BIGINT) AS track_id, CAST(0 AS BIGINT) AS instant, CAST(0 AS BIGINT) AS duration_ms,
    CAST(0 AS BIGINT) AS listener WHERE 1 = 0)"""
CHOSEN = "SELECT * FROM ({rows}) AS r WHERE {condition}"
# The plays of subjects, each once for each subject.
OF_SUBJECTS = """
    SELECT m.subject AS subject, p.track_id AS track_id, p.instant AS instant, p.duration_ms AS duration_ms,
        p.listener AS listener
    FROM {plays} AS p JOIN ({members}) AS m ON m.track_id = p.track_id
"""
# One row for each listener of a subject, so that distinct listeners are rows and need no function of the engine.
HEARD = """
    SELECT p.subject AS subject, p.listener AS listener, COUNT(*) AS ever, MIN(p.instant) AS began,
        SUM(CASE WHEN p.instant >= {start} AND p.instant < {end} THEN 1 ELSE 0 END) AS inside,
        SUM(CASE WHEN p.instant >= {start_before} AND p.instant < {end_before} THEN 1 ELSE 0 END) AS earlier
    FROM ({plays}) AS p GROUP BY p.subject, p.listener
"""
MEASURED = f"""
    SELECT p.subject AS subject, CASE WHEN p.duration_ms IS NULL THEN {WITHOUT_DURATION}
            WHEN t.duration_ms IS NULL THEN {WITHOUT_LENGTH}
            WHEN p.duration_ms >= t.duration_ms THEN 100 ELSE {{percent}} END AS percent,
        CASE WHEN p.duration_ms < {SKIP_BEFORE_MS} AND p.duration_ms * 2 < t.duration_ms THEN 1 ELSE 0 END AS skipped
    FROM ({{played}}) AS p LEFT JOIN (
        SELECT track_id, duration_ms FROM {{tracks}} AS t WHERE duration_ms > 0
    ) AS t ON t.track_id = p.track_id
"""  # noqa: S608 - constants
OF_DAYS = """
    SELECT p.subject AS subject, {day} AS day, p.listener AS listener, COUNT(*) AS number
    FROM ({played}) AS p GROUP BY p.subject, {day}, p.listener
"""
FIRSTS = f"SELECT subject, listener, MIN(day) AS day FROM ({OF_DAYS}) AS d GROUP BY subject, listener"  # noqa: S608 - ours
NUMBERED = """
    SELECT p.subject AS subject, p.instant AS instant,
        ROW_NUMBER() OVER (PARTITION BY p.subject ORDER BY p.instant) AS number
    FROM ({plays}) AS p
"""
# The plays of an artist's tracks on each of its albums.
OF_ARTIST = """
    LEFT JOIN (
        SELECT p.subject AS subject, t.album_id AS item, COUNT(*) AS ever,
            SUM(CASE WHEN p.instant >= {start} AND p.instant < {end} THEN 1 ELSE 0 END) AS inside
        FROM ({plays}) AS p JOIN {tracks} AS t ON t.track_id = p.track_id
        WHERE t.album_id IS NOT NULL GROUP BY p.subject, t.album_id
    ) AS o ON o.subject = l.subject AND o.item = l.item
"""
# `own`: what has the plays that the order goes by.
RANKED = """
    SELECT l.subject AS subject, l.item AS item, l.name AS name, COALESCE(s.ever, 0) AS ever,
        COALESCE(s.inside, 0) AS inside, COALESCE(s.listeners, 0) AS listeners,
        COALESCE({own}.ever, 0) AS own_ever, COALESCE({own}.inside, 0) AS own_inside,
        COUNT(*) OVER (PARTITION BY l.subject) AS size,
        ROW_NUMBER() OVER (
            PARTITION BY l.subject
            ORDER BY COALESCE({own}.inside, 0) DESC, COALESCE({own}.ever, 0) DESC, l.item DESC
        ) AS place
    FROM ({listed}) AS l LEFT JOIN (
        SELECT h.subject AS item, SUM(h.ever) AS ever, SUM(h.inside) AS inside,
            SUM(CASE WHEN h.inside > 0 THEN 1 ELSE 0 END) AS listeners
        FROM ({heard}) AS h GROUP BY h.subject
    ) AS s ON s.item = l.item {of_artist}
"""
COUNTED = (
    "SUM(h.ever)",
    "COUNT(*)",
    "SUM(h.inside)",
    "SUM(CASE WHEN h.inside > 0 THEN 1 ELSE 0 END)",
    "SUM(h.earlier)",
    "SUM(CASE WHEN h.earlier > 0 THEN 1 ELSE 0 END)",
    "SUM(CASE WHEN h.began >= {start} AND h.began < {end} THEN 1 ELSE 0 END)",
    "MIN(h.began)",
)
# By section: what its numbers are selected from, which begins with a table of subjects, and the numbers.
SECTIONS: Mapping[int, tuple[str, Sequence[str]]] = {
    NAME: ("({subjects}) AS s", ()),
    COUNTS: (f"({HEARD}) AS h GROUP BY subject", COUNTED),
    COMPLETION: (f"({MEASURED}) AS m GROUP BY subject, percent, skipped", ("percent", "skipped", "COUNT(*)")),
    BY_HOUR: (
        "(SELECT p.subject AS subject, {hour} AS hour FROM ({played}) AS p) AS h GROUP BY subject, hour",
        ("hour", "COUNT(*)"),
    ),
    BY_DAY: (f"({OF_DAYS}) AS d GROUP BY subject, day", ("day", "SUM(number)", "COUNT(*)")),
    HEARD_FIRST: (f"({FIRSTS}) AS d GROUP BY subject, day", ("day", "COUNT(*)")),
    MILESTONES: (f"({NUMBERED}) AS n WHERE number IN ({REACHED})", ("number", "instant")),
    **{
        section: (
            f"({RANKED.replace('{own}', own).replace('{of_artist}', of_artist)}) AS r WHERE place <= {{top}}",
            ("place", "item", "ever", "inside", "listeners", "size", "own_ever", "own_inside"),
        )
        for section, own, of_artist in ((TRACKS, "s", ""), (ALBUMS, "o", OF_ARTIST))
    },
}
SECTION = """
    SELECT CAST(subject AS BIGINT) AS subject, {section} AS section, {columns}, {name} AS name FROM {source}
"""
NAMES = {NAME: "s.name", TRACKS: "name", ALBUMS: "name"}


class Row(NamedTuple):
    """A row of the result. `numbers`: eight, whose meaning depends on the section."""

    subject: int
    section: int
    numbers: Sequence[int]
    name: str


class Sources(NamedTuple):
    """SQL for the rows of plays and of tables, to put after FROM. `played`: plays of the days of the window.

    `named`: the plays are those of one subject, and have its id (`subject`), so that nothing joins them to it.
    """

    plays: str
    played: str
    tracks: str
    albums: str
    artists: str
    track_artists: str
    album_artists: str
    named: bool = False

    def chosen(self, rows: str, condition: str) -> str:
        return CHOSEN.format(rows=rows.format(**self._asdict()), condition=condition)

    def of(self, plays: str, kind: int, condition: str) -> str:
        """Return SQL for plays of the tracks, albums or artists (`kind`) that the condition chooses."""
        if self.named:
            return f"SELECT * FROM {plays} AS p"  # noqa: S608 - our own SQL
        return OF_SUBJECTS.format(plays=plays, members=self.chosen(MEMBERS[kind], condition))


def build(
    kind: int, ids: Sequence[int], window: Window, sources: Sources, dialect: Dialect, sections: Sequence[int] = ()
) -> str:
    """Return the query for tracks, albums or artists (`kind`). Without `ids`: for all of them.

    By default, it has the sections of figures and of rankings.
    """
    chosen = f"subject IN ({', '.join(map(str, ids))})" if ids else "1 = 1"
    quotient = dialect.quotient.format
    hour = f"({quotient('p.instant', HOUR)} + {FIRST_HOUR})"
    values = sources._asdict() | {
        "subjects": sources.chosen(SUBJECTS[kind], chosen),
        "plays": sources.of(sources.plays, kind, chosen),
        "played": sources.of(sources.played, kind, chosen),
        "start": window.starts,
        "end": window.ends,
        "start_before": window.before.starts,
        "end_before": window.before.ends,
        "percent": quotient("(p.duration_ms * 100)", "t.duration_ms"),
        "day": quotient("p.instant", DAY),
        "hour": f"{hour} - {quotient(hour, HOURS)} * {HOURS}",  # `%` marks parameters on PostgreSQL
        "top": ALL if kind == ALBUM else TOP,
    }

    def section(number: int) -> str:
        source, numbers = SECTIONS[number]
        more = {}
        if listed := LISTED.get((kind, number)):
            more["listed"] = sources.chosen(listed, chosen)
            items = f"subject IN (SELECT item FROM ({more['listed']}) AS i)"  # noqa: S608 - our own SQL
            plays = sources.of(sources.plays, TRACK if number == TRACKS else ALBUM, items)
            more["heard"] = HEARD.format(**values | {"plays": plays})
        pairs = zip_longest(numbers, NUMBERS, fillvalue="0")
        columns = ", ".join(f"CAST({each} AS BIGINT) AS {letter}" for each, letter in pairs)
        text = SECTION.format(section=number, columns=columns, name=NAMES.get(number, "''"), source=source)
        return text.format(**values | more)

    every = " UNION ALL ".join(map(section, sections or (*FIGURES, *RANKINGS[kind])))
    return f"SELECT * FROM ({every}) AS found ORDER BY subject, section, a"  # noqa: S608 - our own SQL


def plays(dialect: Dialect, source: str) -> str:
    """Return SQL for the plays in files, to put after FROM: `instant` is in microseconds since 1970."""
    return PLAYS.format(instant=dialect.micros.format("played_at"), source=source)
