"""Albums with many long texts that a page of them is large, written directly into the store.

artist 1, managed by account 1, with albums 1 … n, each with the given number of tracks, each with a long text
"""

from itertools import count

from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist

LONGEST = "\x01" * 10_000  # 60,000 bytes as JSON, the most that a description can take
NEARLY_FULL = 13  # tracks described by LONGEST: one more would not fit into an album


def fill(store: Store, albums: int, tracks: int, description: str = LONGEST) -> None:
    """Write the world into a store that has one account and no catalog."""

    def write() -> None:
        Artist.create(name="Erik Satie", manager=1, created_at=1)
        ids = range(1, albums + 1)
        bulk.insert(Album, ("id", "name", "created_at"), [(at, f"Album {at}", 1) for at in bulk.ids(Album, albums)])
        bulk.insert(AlbumArtist, ("album", "artist", "position"), [(at, 1, 0) for at in ids])
        numbers = zip(bulk.ids(Track, albums * tracks), count())
        rows = [(at, f"Track {at}", 1 + number // tracks, 1000, 1, description) for at, number in numbers]
        bulk.insert(Track, ("id", "name", "album", "duration", "created_at", "description"), rows)
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(row[0], 1, 0) for row in rows])

    store.write(write).result()
