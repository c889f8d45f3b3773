"""Let what refers to a track, album or artist refer to another one, into which it is merged."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from peewee import SQL, Value, fn

from musicsvc.store.models import (
    AlbumArtist,
    AlbumTag,
    CollectionTrack,
    DeletedTrack,
    PlaylistTrack,
    ReportLink,
    ReportLinkSubject,
    Track,
    TrackArtist,
    TrackGenre,
    TrackLike,
    TrackRepost,
    TrackTag,
)
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

MOST_TAGS = 20  # of a track or album


class Link(NamedTuple):
    """Rows that move from `source` to `target`: their name, the query for them, and the function that moves them."""

    name: str
    rows: Callable[[int, int], Any]
    move: Callable[[int, int], None]


def _lacking(owner: Any, member: Any, source: int, target: int) -> Any:
    """Return the query for the rows of a table of links of `source` that have a member which `target` lacks."""
    table = owner.model
    return table.select().where(owner == source, member.not_in(table.select(member).where(owner == target)))


def _entries(name: str, owner: Any) -> Link:
    """Return the link of rows that move, all of them."""

    def move(source: int, target: int) -> None:
        owner.model.update({owner: target}).where(owner == source).execute()

    return Link(name, lambda source, _: owner.model.select().where(owner == source), move)


def _given(name: str, table: Any) -> Link:
    """Return the link of likes or reposts, of which an account has one of each track."""

    def move(source: int, target: int) -> None:
        others = table.select(table.user).where(table.track == target)
        table.update(track=target).where(table.track == source, table.user.not_in(others)).execute()

    return Link(name, lambda source, target: _lacking(table.track, table.user, source, target), move)


def _labels(name: str, owner: Any, member: Any, most: int | None = None) -> Link:
    """Return the link of genres or tags, of which a row has at most `most`."""

    def move(source: int, target: int) -> None:
        fresh = _lacking(owner, member, source, target).select(Value(target), member).order_by(member)
        room = None if most is None else most - owner.model.select().where(owner == target).count()
        if room is None or room > 0:
            owner.model.insert_from(fresh.limit(room), [owner, member]).execute()

    return Link(name, lambda source, target: _lacking(owner, member, source, target), move)


def _credits(name: str, owner: Any) -> Link:
    """Return the link of what credits an artist."""

    def move(source: int, target: int) -> None:
        _credit(owner, source, [target])

    return Link(name, lambda source, _: owner.model.select().where(owner.model.artist == source), move)


def _credit(owner: Any, source: int, targets: Sequence[int]) -> None:
    """Credit artists wherever one is, at its place and in this order. Those with an earlier place stay there."""
    table = owner.model
    beside = table.alias()
    at = beside.select(beside.position).where(getattr(beside, owner.name) == owner, beside.artist == source)
    if len(targets) > 1:
        on = table.select(owner).where(table.artist == source)
        after = owner.in_(on) & (table.position > at)
        table.update(position=table.position + len(targets) - 1).where(after).execute()
    for place, target in enumerate(targets):
        later = (table.artist == target) & (table.position > at)
        table.update(position=Value(place) + at).where(later).execute()
        rows = table.select(owner, Value(target), table.position + place).where(table.artist == source)
        table.insert_from(rows, [owner, table.artist, table.position]).on_conflict_ignore().execute()


def _move_album_artists(source: int, target: int) -> None:
    last = AlbumArtist.select(fn.MAX(AlbumArtist.position)).where(AlbumArtist.album == target).scalar()
    position = AlbumArtist.position + (0 if last is None else last + 1)
    rows = _lacking(AlbumArtist.album, AlbumArtist.artist, source, target)
    rows = rows.select(Value(target), AlbumArtist.artist, position)
    AlbumArtist.insert_from(rows, [AlbumArtist.album, AlbumArtist.artist, AlbumArtist.position]).execute()


LINKS: Mapping[int, Sequence[Link]] = {
    ARTIST: [_credits("tracks", TrackArtist.track), _credits("albums", AlbumArtist.album)],
    ALBUM: [
        _entries("tracks", Track.album),
        Link(
            "artists",
            lambda source, target: _lacking(AlbumArtist.album, AlbumArtist.artist, source, target),
            _move_album_artists,
        ),
        _labels("tags", AlbumTag.album, AlbumTag.tag, MOST_TAGS),
    ],
    TRACK: [
        _given("likes", TrackLike),
        _given("reposts", TrackRepost),
        _entries("playlist_entries", PlaylistTrack.track),
        _entries("collection_entries", CollectionTrack.track),
        _labels("genres", TrackGenre.track, TrackGenre.genre),
        _labels("tags", TrackTag.track, TrackTag.tag, MOST_TAGS),
    ],
}


def count(kind: int, source: int, target: int) -> dict[str, int]:
    """Return how many rows move, by their names. Those without rows are left out."""
    found = {link.name: link.rows(source, target).count() for link in LINKS[kind]}
    return {name: number for name, number in found.items() if number}


def move(kind: int, source: int, target: int) -> None:
    """Move all rows that refer to `source` to `target`. Rows that `target` has already stay behind."""
    for link in LINKS[kind]:
        link.move(source, target)
    if kind == TRACK:
        _count_given(target)
    else:
        _move_deleted(kind, source, [target])
    _move_shared(kind, source, target)


def divide(source: int, targets: Sequence[int]) -> None:
    """Let what credits an artist credit several, in its place. Share links of it show nothing any more."""
    for owner in (TrackArtist.track, AlbumArtist.album):
        _credit(owner, source, targets)
    _move_deleted(ARTIST, source, targets)


def _count_given(track: int) -> None:
    """Count the likes and reposts of a track again."""
    likes, reposts = (
        table.select(fn.COUNT(SQL("*"))).where(table.track == track) for table in (TrackLike, TrackRepost)
    )
    Track.update(likes_count=likes, reposts_count=reposts).where(Track.id == track).execute()


def _move_deleted(kind: int, source: int, targets: Sequence[int]) -> None:
    """Let the plays of deleted tracks that count for the one count for the others."""
    of_source = (DeletedTrack.kind == kind) & (DeletedTrack.subject == source)
    columns = [DeletedTrack.kind, DeletedTrack.subject, DeletedTrack.track, DeletedTrack.duration]
    for target in targets:
        rows = DeletedTrack.select(columns[0], Value(target), *columns[2:]).where(of_source)
        DeletedTrack.insert_from(rows, columns).on_conflict_ignore().execute()
    DeletedTrack.delete().where(of_source).execute()


def _move_shared(kind: int, source: int, target: int) -> None:
    """Let share links show the other. One that compares both stays a comparison, and shows it once."""
    links = ReportLink.select(ReportLink.id).where(ReportLink.kind == kind)
    of_source = (ReportLinkSubject.subject == source) & ReportLinkSubject.report_link.in_(links)
    ReportLinkSubject.update(subject=target).where(of_source).execute()
