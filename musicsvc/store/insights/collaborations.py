"""Find the tracks that an artist shares with other artists, and those other artists."""

from typing import NamedTuple

from musicsvc.store.engine.sql import fetch

LIMIT = 100  # rows of each list
SHARED = """
    SELECT l.track_id FROM track_artist l WHERE l.artist_id = ?
    AND EXISTS (SELECT 1 FROM track_artist o WHERE o.track_id = l.track_id AND o.artist_id <> l.artist_id)
"""
COUNT = f"SELECT COUNT(*) FROM ({SHARED}) AS shared"  # noqa: S608 - constants
PARTNERS = f"""
    SELECT a.id, a.name, a.image_small, a.verified, COUNT(*) AS tracks,
           CAST(COALESCE(SUM(p.plays), 0) AS BIGINT) AS plays
    FROM track_artist mine JOIN track_artist o ON o.track_id = mine.track_id AND o.artist_id <> mine.artist_id
    JOIN artist a ON a.id = o.artist_id
    LEFT JOIN track_plays p ON p.track_id = mine.track_id
    WHERE mine.artist_id = ? GROUP BY a.id, a.name, a.image_small, a.verified
    ORDER BY tracks DESC, plays DESC, a.id DESC LIMIT {LIMIT}
"""  # noqa: S608 - constants
MOST_PLAYED = f"""
    SELECT t.id FROM track t LEFT JOIN track_plays p ON p.track_id = t.id
    WHERE t.id IN ({SHARED}) ORDER BY COALESCE(p.plays, 0) DESC, t.id DESC LIMIT {LIMIT}
"""  # noqa: S608 - constants


class Collaborator(NamedTuple):
    """An artist on shared tracks, with the number of these tracks and their all-time plays."""

    id: int
    name: str
    image_small: str | None
    verified: bool
    tracks: int
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
    ((total,),) = fetch(COUNT, artist_id)
    order = [track_id for (track_id,) in fetch(MOST_PLAYED, artist_id)]
    partners = [Collaborator._make(row) for row in fetch(PARTNERS, artist_id)]
    return Collaborations(total, partners, order)
