"""The figures of tracks, albums and artists: one definition of each, for endpoints, exports, pages and the terminal.

Definitions: docs/insights.md. Every figure is of the moment: it is read from what the events themselves keep up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.errors import Forbidden, NotFound
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import Subject
from musicsvc.store.plays.rollups.subjects import ALBUM, ARTIST, KINDS, TRACK

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.plays.periods import Window

NOT_YOURS = "These are another account's figures."
# Whether an account manages it; no row where there is no such thing.
MANAGED = {
    TRACK: """
        SELECT EXISTS (SELECT 1 FROM track_artist l JOIN artist a ON a.id = l.artist_id
                       WHERE l.track_id = t.id AND a.manager_id = ?) FROM track t WHERE t.id = ?
    """,
    ALBUM: """
        SELECT EXISTS (SELECT 1 FROM album_artist l JOIN artist a ON a.id = l.artist_id
                       WHERE l.album_id = t.id AND a.manager_id = ?) FROM album t WHERE t.id = ?
    """,
    ARTIST: "SELECT manager_id = ? FROM artist WHERE id = ?",
}
NAMES = {kind: f"SELECT name FROM {noun} WHERE id = ?" for noun, kind in KINDS.items()}  # noqa: S608 - our own nouns
# Which likes and reposts are a subject's: those of its tracks.
OF_TRACKS = {
    TRACK: "track_id = ?",
    ALBUM: "track_id IN (SELECT id FROM track WHERE album_id = ?)",
    ARTIST: "track_id IN (SELECT track_id FROM track_artist WHERE artist_id = ?)",
}
ENGAGEMENT = {
    kind: f"""
        SELECT (SELECT COUNT(*) FROM track_like WHERE {those} AND created_at >= ? AND created_at < ?),
               (SELECT COUNT(*) FROM track_repost WHERE {those} AND created_at >= ? AND created_at < ?)
    """  # noqa: S608 - constants
    for kind, those in OF_TRACKS.items()
}
STANDING = """
    SELECT (SELECT COUNT(*) FROM follow f WHERE f.followed_id = a.manager_id),
           (SELECT COUNT(*) FROM track_artist l WHERE l.artist_id = a.id),
           (SELECT COUNT(*) FROM album_artist l WHERE l.artist_id = a.id)
    FROM artist a WHERE a.id = ?
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """The four blocks of figures of a subject in a window."""

    window: Window
    plays_total: int
    plays: int
    listeners_total: int
    listeners: int
    likes: int
    reposts: int
    plays_change: float | None
    listeners_change: float | None


class Standing(NamedTuple):
    """What an artist has at the moment: followers of the account that manages it, tracks, albums."""

    followers: int
    tracks: int
    albums: int


def track_of(track_id: int, *, actor: Identity) -> Subject:
    """The track, for who manages an artist credited on it."""
    return _managed(Subject(TRACK, track_id), actor)


def album_of(album_id: int, *, actor: Identity) -> Subject:
    """The album, for who manages an artist of it."""
    return _managed(Subject(ALBUM, album_id), actor)


def artist_of(artist_id: int, *, actor: Identity) -> Subject:
    """The artist, for who manages it."""
    return _managed(Subject(ARTIST, artist_id), actor)


def _managed(subject: Subject, actor: Identity) -> Subject:
    for (managed,) in fetch(MANAGED[subject.kind], actor.user_id, subject.id):
        if managed:
            return subject
        raise Forbidden(NOT_YOURS)
    raise NotFound(f"There is no such {noun(subject)}.")


def noun(subject: Subject) -> str:
    """The word for what the subject is."""
    return next(word for word, kind in KINDS.items() if kind == subject.kind)


def name(subject: Subject) -> str:
    """The subject's own name; raises NotFound."""
    for (found,) in fetch(NAMES[subject.kind], subject.id):
        return str(found)
    raise NotFound(f"There is no {noun(subject)} {subject.id}.")


def figures(subject: Subject, window: Window) -> Figures:
    """The figures of a subject in a window, with the growth against the window before."""
    within, before, ever = reader.over(subject, window, window.before)
    unique = len(within.listeners)
    likes, reposts = engagement(subject, window)
    return Figures(
        window=window,
        plays_total=ever.plays,
        plays=within.plays,
        listeners_total=len(ever.listeners),
        listeners=unique,
        likes=likes,
        reposts=reposts,
        plays_change=change(within.plays, before.plays),
        listeners_change=change(unique, len(before.listeners)),
    )


def change(now: int, before: int) -> float | None:
    """Growth in percent, one decimal; None where there was nothing before."""
    return round((now - before) * 100 / before, 1) + 0.0 if before else None  # never -0.0


def engagement(subject: Subject, window: Window) -> tuple[int, int]:
    """The likes and reposts of a subject's tracks given in the window that still stand."""
    given = (subject.id, window.starts, window.ends)
    ((likes, reposts),) = fetch(ENGAGEMENT[subject.kind], *given, *given)
    return likes, reposts


def standing(artist_id: int) -> Standing:
    """What the artist has at the moment."""
    return Standing._make(fetch(STANDING, artist_id)[0])
