"""The figures of tracks, albums and artists: one definition of each, for endpoints, exports, pages and the terminal.

Definitions: contract.md, section 5. Plays and listeners come from the daily rows, which the plays themselves keep up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from peewee import fn

from musicsvc.errors import Forbidden
from musicsvc.store import albums, artists, listeners, tracks
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Follow,
    PlayDay,
    PlayTotal,
    Track,
    TrackArtist,
    TrackLike,
    TrackRepost,
)
from musicsvc.store.rollups import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from musicsvc.store.albums import AlbumRow
    from musicsvc.store.artists import ArtistRow
    from musicsvc.store.tokens import Identity
    from musicsvc.store.tracks import TrackRow
    from musicsvc.store.windows import Window

NOT_YOURS = "These are another account's figures."
TOP = 10


class Subject(NamedTuple):
    """What figures are asked of."""

    kind: int
    id: int


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


@dataclass(frozen=True, slots=True)
class Ranked:
    """A track or album within another subject's figures."""

    id: int
    name: str
    plays_total: int
    plays: int
    listeners: int


def track_of(track_id: int, *, by: Identity) -> TrackRow:
    """The track, for who manages an artist credited on it."""
    track = tracks.get(track_id)
    _require(TrackArtist.select().join(Artist).where(TrackArtist.track == track_id, Artist.manager == by.user_id))
    return track


def album_of(album_id: int, *, by: Identity) -> AlbumRow:
    """The album, for who manages an artist of it."""
    album = albums.get(album_id)
    _require(AlbumArtist.select().join(Artist).where(AlbumArtist.album == album_id, Artist.manager == by.user_id))
    return album


def artist_of(artist_id: int, *, by: Identity) -> ArtistRow:
    """The artist, for who manages it."""
    artist = artists.get(artist_id)
    if artist.manager_id != by.user_id:
        raise Forbidden(NOT_YOURS)
    return artist


def _require(query: Any) -> None:
    if not query.exists():
        raise Forbidden(NOT_YOURS)


def figures(subject: Subject, window: Window) -> Figures:
    """The figures of a subject in a window, with the growth against the window before."""
    before: list[tuple[int, bytes]] = []
    within: list[tuple[int, bytes]] = []
    for day, plays, packed in _days(subject, window.before.first, window.end):
        (within if window.holds(day) else before).append((plays, packed))
    plays = sum(count for count, _ in within)
    unique = len(listeners.union(packed for _, packed in within))
    total_plays, total_listeners = totals(subject)
    likes, reposts = engagement(subject, window)
    return Figures(
        window=window,
        plays_total=total_plays,
        plays=plays,
        listeners_total=total_listeners,
        listeners=unique,
        likes=likes,
        reposts=reposts,
        plays_change=change(plays, sum(count for count, _ in before)),
        listeners_change=change(unique, len(listeners.union(packed for _, packed in before))),
    )


def change(now: int, before: int) -> float | None:
    """Growth in percent, one decimal; None where there was nothing before."""
    return round((now - before) * 100 / before, 1) + 0.0 if before else None  # never -0.0


def _days(subject: Subject, first: int, end: int) -> Iterable[tuple[int, int, bytes]]:
    """(day, plays, packed listeners) of the days from `first` up to, not including, `end`."""
    query = PlayDay.select(PlayDay.day, PlayDay.plays, PlayDay.listeners).where(
        PlayDay.kind == subject.kind, PlayDay.subject == subject.id, PlayDay.day >= first, PlayDay.day < end
    )
    rows: Iterable[tuple[int, int, bytes]] = query.order_by(PlayDay.day).tuples().iterator()
    return rows


def totals(subject: Subject) -> tuple[int, int]:
    """The plays and the distinct listeners of all time."""
    mine = (PlayTotal.kind == subject.kind) & (PlayTotal.subject == subject.id)
    for plays, packed in PlayTotal.select(PlayTotal.plays, PlayTotal.listeners).where(mine).tuples().iterator():
        return plays, listeners.count(packed)
    return 0, 0


def engagement(subject: Subject, window: Window) -> tuple[int, int]:
    """The likes and reposts given in the window that still stand."""
    likes, reposts = (
        model.select().where(model.track.in_(track_ids(subject)), *_given(model, window)).count()
        for model in (TrackLike, TrackRepost)
    )
    return likes, reposts


def track_ids(subject: Subject) -> Any:
    """The ids of a subject's tracks, as a query or a list."""
    if subject.kind == ALBUM:
        return Track.select(Track.id).where(Track.album == subject.id)
    if subject.kind == ARTIST:
        return TrackArtist.select(TrackArtist.track).where(TrackArtist.artist == subject.id)
    return [subject.id]


def _given(model: Any, window: Window) -> tuple[Any, Any]:
    return model.created_at >= window.starts, model.created_at < window.ends


def ranked(kind: int, ids: Any, window: Window, top: int | None = None) -> list[Ranked]:
    """The tracks or albums with these ids (a query) and their figures, most played in the window first."""
    model = Track if kind == TRACK else Album
    names = dict(model.select(model.id, model.name).where(model.id.in_(ids)).tuples().iterator())
    plays = _sums(kind, ids, window)
    all_time = _all_time(kind, ids)
    order = sorted(names, key=lambda each: (-plays.get(each, 0), -all_time.get(each, 0), -each))[:top]
    unique = _uniques(kind, order, window)
    return [Ranked(each, names[each], all_time.get(each, 0), plays.get(each, 0), unique.get(each, 0)) for each in order]


def _sums(kind: int, ids: Any, window: Window) -> dict[int, int]:
    query = PlayDay.select(PlayDay.subject, fn.SUM(PlayDay.plays)).where(*_rows_of(kind, ids, window))
    return {subject: int(plays) for subject, plays in query.group_by(PlayDay.subject).tuples().iterator()}


def _all_time(kind: int, ids: Any) -> dict[int, int]:
    query = PlayTotal.select(PlayTotal.subject, PlayTotal.plays).where(
        PlayTotal.kind == kind, PlayTotal.subject.in_(ids)
    )
    return dict(query.tuples().iterator())


def _uniques(kind: int, ids: Sequence[int], window: Window) -> dict[int, int]:
    packed: dict[int, list[bytes]] = {}
    query = PlayDay.select(PlayDay.subject, PlayDay.listeners).where(*_rows_of(kind, ids, window))
    for subject, some in query.tuples().iterator():
        packed.setdefault(subject, []).append(some)
    return {subject: len(listeners.union(some)) for subject, some in packed.items()}


def _rows_of(kind: int, ids: Any, window: Window) -> tuple[Any, ...]:
    return (
        PlayDay.kind == kind,
        PlayDay.subject.in_(ids),
        PlayDay.day >= window.first,
        PlayDay.day < window.end,
    )


def followers(manager_id: int | None) -> int:
    """The followers of the account that manages an artist."""
    return 0 if manager_id is None else Follow.select().where(Follow.followed == manager_id).count()
