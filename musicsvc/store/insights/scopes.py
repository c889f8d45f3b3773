"""Scopes of exports and reports: all that an account manages, an artist, an album, a track, or the whole catalog."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from typing import Any, NamedTuple

from peewee import JOIN, SQL, Case, fn
from pyroaring import BitMap64

from musicsvc.store.accounts import users
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine import sql
from musicsvc.store.insights import belonging, figures
from musicsvc.store.models import Album, Artist, DeletedTrack, Track, TrackArtist
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, TRACK, Subject

DELETED = -1  # in place of a kind: deleted tracks, whose plays still count
IDS_PER_BATCH = 10_000
FEW_TRACKS = 256  # of a small scope


class Scope(NamedTuple):
    """Selects tracks, albums and artists. None means any.

    At most one of `artist`, `album` and `track` (ids) is given: the subject. `manager`: the account that manages the
    artists. An album or a track is selected whoever manages it, so check the right to it before.
    """

    manager: int | None = None
    artist: int | None = None
    album: int | None = None
    track: int | None = None

    @property
    def subject(self) -> Subject | None:
        """The artist, album or track to which the scope is limited."""
        given = ((ARTIST, self.artist), (ALBUM, self.album), (TRACK, self.track))
        return next((Subject(kind, each) for kind, each in given if each is not None), None)

    def ids(self, kind: int) -> BitMap64:
        """Return the ids of the tracks, albums, artists or deleted tracks in the scope.

        Raises NotFound for an unknown subject.
        """
        if self.subject is not None:
            figures.name(self.subject)
        found = BitMap64()
        # In batches, since BitMap64 would first create a list of all ids.
        for some in sql.batches(_stream(self._select(kind)), IDS_PER_BATCH):
            found.update([row[0] for row in some])
        return found

    def is_small(self) -> bool:
        """Return whether the scope has at most FEW_TRACKS tracks."""
        return bool(self._select(TRACK).distinct().limit(FEW_TRACKS + 1).count() <= FEW_TRACKS)

    def newest_albums(self, until: date, count: int) -> list[int]:
        """Return the ids of the newest albums that were released on this day or before it, newest first."""
        mine = Album.id.in_(self._select(ALBUM))
        query = Album.select(Album.id).where(mine, Album.release_date <= until.isoformat())
        order = query.order_by(Album.release_date.desc(), Album.id.desc())
        return [row.id for row in order.limit(count)]

    def _select(self, kind: int) -> Any:
        """Return a query for the ids of the tracks, albums, artists or deleted tracks in the scope.

        To an album or a track nothing belongs that has other plays too: to an album no artists, to a track no album.
        """
        of = self.subject
        if of is None or of.kind == ARTIST:
            return self._of_artists(kind)
        if kind == DELETED:
            deleted = DeletedTrack.select(DeletedTrack.track)
            return deleted.where(DeletedTrack.kind == of.kind, DeletedTrack.subject == of.id)
        if (of.kind, kind) in belonging.MEMBERS:
            return belonging.members(of.id, of.kind, kind)
        return Track.select(Track.id).where(SQL("FALSE"))

    def _of_artists(self, kind: int) -> Any:
        """Return the query for a scope that is limited to the manager or id of artists, or not at all."""
        given = [] if self.manager is None else [managed_by(self.manager)]
        given += [] if self.artist is None else [Artist.id == self.artist]
        if kind == DELETED:
            found = DeletedTrack.select(DeletedTrack.track)
            artists = (DeletedTrack.kind == ARTIST) & (DeletedTrack.subject == Artist.id)
            return found.join(Artist, on=artists).where(*given) if given else found.distinct()
        row = belonging.ROWS[kind]
        if not given or kind == ARTIST:
            return row.select(row.id).where(*given) if given else row.select(row.id)
        credited = belonging.CREDITED[kind]
        return credited.model.select(credited).join(Artist).where(*given)


def _stream(query: Any) -> Iterator[Any]:
    statement, values = query.sql()
    return sql.stream_rows(statement, *values)


class Part(NamedTuple):
    """Subjects of one kind, whose plays are added to a sum `times` times, or subtracted if it is negative."""

    kind: int
    ids: BitMap64
    times: int


def parts(scope: Scope, artists: BitMap64) -> Iterator[Part]:
    """Yield parts whose plays, added up, are the plays of the scope.

    Of an account, an artist, an album or a track this is one part. The whole catalog has its artists, and tracks to
    correct the sum, which has the plays of a track once for each of its artists: tracks of several artists are
    subtracted, and tracks without artist are added.
    """
    if scope.subject is not None and scope.subject.kind != ARTIST:
        yield Part(scope.subject.kind, BitMap64([scope.subject.id]), 1)
    elif scope.manager is not None and scope.subject is None:
        yield Part(ACCOUNT, BitMap64([scope.manager]), 1)
    else:
        yield Part(ARTIST, artists, 1)
    if scope == Scope():
        for count, tracks in _uneven().items():
            yield Part(TRACK, tracks, 1 - count)


def _uneven() -> dict[int, BitMap64]:
    """Return the ids of tracks with several artists, or with none, by the number of artists."""
    found: dict[int, BitMap64] = defaultdict(BitMap64)
    links = fn.COUNT(TrackArtist.artist)
    existing = Track.select(Track.id, links).join(TrackArtist, JOIN.LEFT_OUTER).group_by(Track.id).having(links != 1)
    links = fn.COUNT(Case(None, [(DeletedTrack.kind == ARTIST, 1)]))
    deleted = DeletedTrack.select(DeletedTrack.track, links).group_by(DeletedTrack.track).having(links != 1)
    for query in (existing, deleted):
        for track, count in _stream(query):
            found[count].add(track)
    return found


def name(scope: Scope) -> str | None:
    """Return the name of the scope's subject or account, or None for the whole catalog."""
    if scope.subject is not None:
        return figures.name(scope.subject)
    if scope.manager is None:
        return None
    return users.get(scope.manager).display_name


@contextmanager
def limited_memory(scope: Scope) -> Iterator[None]:
    """Disable SQLite's memory map inside the `with` block, unless the scope has at most FEW_TRACKS tracks.

    Memory-mapped pages increase the memory use of the process, but reading without the map takes longer.
    """
    unlimited = not sql.is_sqlite() or scope.is_small()
    with nullcontext() if unlimited else sql.without_memory_map():
        yield
