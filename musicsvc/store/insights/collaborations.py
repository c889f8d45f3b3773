"""Find the tracks that an artist shares with other artists, and those other artists."""

from typing import Any, NamedTuple

from peewee import JOIN, fn

from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Artist, Track, TrackArtist, TrackPlays

LIMIT = 100  # rows of each list


class Collaborator(NamedTuple):
    """An artist on shared tracks, with the number of these tracks and their all-time plays."""

    id: int
    name: str
    image_small: str | None
    verified: bool
    tracks_count: int
    plays: int


class Collaborations(NamedTuple):
    """Other artists, most shared tracks first, and ids of shared tracks, most played first; up to 100 of each.

    `total` is the number of all shared tracks.
    """

    total: int
    collaborators: list[Collaborator]
    track_ids: list[int]


def load(artist_id: int) -> Collaborations:
    """Return the tracks that the artist shares with others, and these other artists; at most a hundred of each."""
    ((total,),) = _count(artist_id)
    order = [track_id for (track_id,) in _most_played(artist_id)]
    partners = [Collaborator._make(row) for row in _partners(artist_id)]
    return Collaborations(total, partners, order)


def _shared(artist_id: int, columns: Any = TrackArtist.track) -> Any:
    other = TrackArtist.alias()
    others = other.select(other.track).where(other.track == TrackArtist.track, other.artist != TrackArtist.artist)
    return TrackArtist.select(columns).where(TrackArtist.artist == artist_id, fn.EXISTS(others))


@compiled
def _count(artist_id: int) -> Any:
    return _shared(artist_id, fn.COUNT(TrackArtist.track))


@compiled
def _most_played(artist_id: int) -> Any:
    query = Track.select(Track.id).join(TrackPlays, JOIN.LEFT_OUTER, on=TrackPlays.track == Track.id)
    plays = fn.COALESCE(TrackPlays.plays, 0)
    return query.where(Track.id.in_(_shared(artist_id))).order_by(plays.desc(), Track.id.desc()).limit(LIMIT)


@compiled
def _partners(artist_id: int) -> Any:
    mine, other = TrackArtist.alias(), TrackArtist.alias()
    tracks, plays = fn.COUNT(other.track), fn.COALESCE(fn.SUM(TrackPlays.plays), 0).cast("BIGINT")
    columns = Artist.id, Artist.name, Artist.image_small, Artist.verified
    query = mine.select(*columns, tracks, plays).join(
        other, on=(other.track == mine.track) & (other.artist != mine.artist)
    )
    query = query.join(Artist, on=Artist.id == other.artist)
    query = query.switch(mine).join(TrackPlays, JOIN.LEFT_OUTER, on=TrackPlays.track == mine.track)
    query = query.where(mine.artist == artist_id).group_by(*columns)
    return query.order_by(tracks.desc(), plays.desc(), Artist.id.desc()).limit(LIMIT)
