"""Figures of tracks, albums and artists, for the API, exports, pages and the command line (docs/insights.md).

The figures are always current: the transaction that stores a play also updates the counts.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.errors import Forbidden, first
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import belonging, engagement
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.models import AlbumArtist, Artist, Follow, TrackArtist, User
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, NOUNS, TRACK, Subject

NOT_YOURS = "These are another account's figures."


@dataclass(frozen=True, slots=True)
class Figure:
    """Says how a field of `Figures` or `Listening` is shown by API, pages, reports, files and the command line.

    - `key`: the field. `path`: its place in JSON, such as `plays.total`. `column`: its name in tables, if it differs.
    - `note`: stands beside the figure, and may contain others by path: `of {plays.total}`.
    - `growth`: the path of its growth. `card`: shown by itself, not only in the notes of others.
    - `all_time`: it also depends on plays before the period.
    """

    key: str
    path: str
    example: float | str
    title: str
    definition: str
    note: str = ""
    unit: str = ""
    growth: str = ""
    column: str = ""
    card: bool = True
    all_time: bool = False

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.column or self.key


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a range of days, and of all time (`…_total`). `…_change`: growth since an earlier range, in %.

    `first_day`: the day of the first play.
    """

    window: Window
    plays_total: int
    plays: int
    listeners_total: int
    listeners: int
    likes: int
    reposts: int
    plays_change: float | None
    listeners_change: float | None
    first_day: int | None

    @property
    def first_play(self) -> str | None:
        return None if self.first_day is None else to_date(self.first_day).isoformat()


# fmt: off
FIGURES = (
    Figure("plays_total", "plays.total", 5120, "Plays of all time", "Plays of all time.", card=False, all_time=True),
    Figure("plays", "plays.period", 412, "Plays", "Plays in the period.", "{plays.total} of all time",
           growth="growth.plays_change", column="plays_period"),
    Figure("listeners_total", "listeners.total", 901, "Listeners of all time", "Distinct listeners of all time.",
           card=False, all_time=True),
    Figure("listeners", "listeners.unique", 187, "Listeners", "Distinct listeners in the period.",
           "{listeners.total} of all time", growth="growth.listeners_change", column="listeners_period"),
    Figure("likes", "engagement.likes", 31, "Likes", "Likes given in the period and not withdrawn since.",
           "given in these days"),
    Figure("reposts", "engagement.reposts", 4, "Reposts", "Reposts given in the period and not withdrawn since.",
           "given in these days"),
    Figure("plays_change", "growth.plays_change", 12.5, "Growth of plays",
           "Growth of plays in percent from the days compared with; null if these had no plays.", unit="%",
           card=False),
    Figure("listeners_change", "growth.listeners_change", -3.1, "Growth of listeners",
           "Growth of listeners in percent from the days compared with; null if nobody listened.", unit="%",
           card=False),
)
FIRST_PLAY = Figure("first_play", "growth.first_play", "2025-09-29", "First play",
                    "The day of the first play; null without plays. Growth misleads if it lies after the first of"
                    " the days compared with.", card=False)
# fmt: on
IN_DATA = (*FIGURES, FIRST_PLAY)


class ArtistCounts(NamedTuple):
    """An artist's numbers of tracks and albums, and the number of accounts that follow the artist's manager."""

    followers: int
    tracks: int
    albums: int


def track_of(track_id: int, *, actor: Identity) -> Subject:
    """Return the track with this id. Raises NotFound, or Forbidden if `actor` manages none of its artists."""
    return _managed(Subject(TRACK, track_id), actor)


def album_of(album_id: int, *, actor: Identity) -> Subject:
    """Return the album with this id. Raises NotFound, or Forbidden if `actor` manages none of its artists."""
    return _managed(Subject(ALBUM, album_id), actor)


def artist_of(artist_id: int, *, actor: Identity) -> Subject:
    """Return the artist with this id. Raises NotFound, or Forbidden if `actor` does not manage the artist."""
    return _managed(Subject(ARTIST, artist_id), actor)


def _managed(subject: Subject, actor: Identity) -> Subject:
    check_manager(subject, actor.user_id)
    return subject


def check_manager(subject: Subject, user_id: int) -> None:
    """Raise NotFound if the track, album or artist does not exist, Forbidden if the account does not manage it."""
    found = _managed_one(subject.id, user_id, kind=subject.kind)
    (managed,) = first(found, f"There is no such {noun(subject)}.")
    if not managed:
        raise Forbidden(NOT_YOURS)


@compiled
def _managed_one(subject: int, user_id: int, *, kind: int) -> Any:
    row = belonging.ROWS[kind]
    return row.select(belonging.is_managed(kind, row.id, user_id)).where(row.id == subject)


def check_albums(ids: Collection[int], *, actor: Identity) -> None:
    """Raise Forbidden if `actor` manages no artist of one of these albums. `ids` must be distinct."""
    if len(belonging.managed(ids, actor.user_id, kind=ALBUM)) < len(ids):
        raise Forbidden(NOT_YOURS)


def noun(subject: Subject) -> str:
    """Return `track`, `album`, `artist` or `account`."""
    return NOUNS[subject.kind]


def name(subject: Subject) -> str:
    """Return the name of a track, album, artist or account. Raises NotFound if it does not exist."""
    (found,) = first(_names(subject.id, kind=subject.kind), f"There is no {noun(subject)} {subject.id}.")
    return str(found)


@compiled
def _names(subject: int, *, kind: int) -> Any:
    row, name = (User, User.display_name) if kind == ACCOUNT else (belonging.ROWS[kind], belonging.ROWS[kind].name)
    return row.select(name).where(row.id == subject)


def figures(subject: Subject, window: Window) -> Figures:
    """Return the figures of a track, album or artist in the window, with the growth since the earlier window."""
    return of_several(subject.kind, [subject.id], window)[subject.id]


def of_several(kind: int, ids: Sequence[int], window: Window, reader: Reader | None = None) -> dict[int, Figures]:
    """Return the figures of some tracks, albums or artists in the window, by id.

    With `reader`, a `Reader(window, window.before)`, not all rows are in memory, and `ids` must be in ascending order.
    """
    given = engagement.by_subject(kind, ids, window)
    stats = reader.stream(kind, ids) if reader else Reader(window, window.before).read(kind, ids)
    first = first_plays.by_id(kind, ids)
    return {each: build(window, stats[each], given.likes[each], given.reposts[each], first.get(each)) for each in ids}


def build(window: Window, stats: Sequence[PlayStats], likes: int, reposts: int, first_day: int | None) -> Figures:
    """Build figures from `stats` (window, earlier window, all time), likes, reposts and the first play."""
    within, before, ever = stats
    listeners = len(within.listeners)
    return Figures(
        window=window,
        plays_total=ever.plays,
        plays=within.plays,
        listeners_total=len(ever.listeners),
        listeners=listeners,
        likes=likes,
        reposts=reposts,
        plays_change=change(within.plays, before.plays),
        listeners_change=change(listeners, len(before.listeners)),
        first_day=first_day,
    )


def change(now: int, before: int) -> float | None:
    """Return the growth from `before` to `now` in percent with one decimal, or None if `before` is not positive."""
    return ratio((now - before) * 100, before, 1) if before > 0 else None


def ratio(numerator: int, denominator: int, decimals: int) -> float:
    """Return the exact fraction, rounded to this number of decimals: the rounding of all figures.

    Halves are rounded away from zero, as ROUND of SQL and of spreadsheets does: 2.25 to 2.3, and -2.25 to -2.3.
    `denominator` must be positive.
    """
    scale: int = 10**decimals
    steps = (2 * abs(numerator) * scale + denominator) // (2 * denominator)
    return (steps if numerator > 0 else -steps) / scale


def change_formula(now: int, before: int) -> str:
    """Return the calculation of a growth in percent as text, such as `(6 - 4) * 100 / 4`."""
    return f"({now} - {before}) * 100 / {before}" if before else "none, as the window before is empty"


def artist_counts(artist_id: int) -> ArtistCounts:
    return ArtistCounts._make(_artist_counts(artist_id)[0])


@compiled
def _artist_counts(artist_id: int) -> Any:
    return Artist.select(
        Follow.select(fn.COUNT(SQL("*"))).where(Follow.followed == Artist.manager),
        TrackArtist.select(fn.COUNT(SQL("*"))).where(TrackArtist.artist == Artist.id),
        AlbumArtist.select(fn.COUNT(SQL("*"))).where(AlbumArtist.artist == Artist.id),
    ).where(Artist.id == artist_id)
