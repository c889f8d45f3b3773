"""Imports of plays into a small catalog, and the plays of the store after them."""

from musicsvc.clock import SECOND
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Artist, Listener, Play, Track, TrackArtist
from tests.conftest import NOW
from tests.support.import_files import Import

BLOCK = 2000


def make_catalog() -> None:
    """Create tracks: 1 Rag by Ann of the label, 2 Rag by ann and Bea on Two, 3 Waltz by Bea, 4 Waltz by Bea on Two."""
    label = users.create("label@label.test", now=NOW).id
    for name, manager in (("Ann", label), ("ann", None), ("Bea", None)):
        Artist.create(name=name, manager=manager, created_at=NOW)
    Album.create(name="Two", created_at=NOW)
    tracks = (("Rag", None, "x", label), ("Rag", 1, None, 0), ("Waltz", None, "x", 0), ("Waltz", 1, "y", 0))
    for name, album, external_id, mine in tracks:
        Track.create(name=name, duration=1, album=album, external_id=external_id, imported_for=mine, created_at=NOW)
    for track, artist, position in ((1, 1, 0), (2, 2, 0), (2, 3, 1), (3, 3, 0), (4, 3, 0)):
        TrackArtist.create(track=track, artist=artist, position=position)


def row(**more: object) -> dict[str, object]:
    return {"track_id": 1, "played_at": NOW // SECOND - 60} | more


def tally(summary: ImportSummary) -> tuple[int, int, int]:
    found = summary.counts["plays"]
    return found.new, found.repeated, found.refused


def kept(store: Store) -> list[tuple[int, int, str]]:
    """Return (track, played at, listener) of every play, by time."""

    def read() -> list[tuple[int, int, str]]:
        query = Play.select(Play.track, Play.played_at, Listener.key).join(Listener, on=(Play.listener == Listener.id))
        return sorted(query.tuples().iterator(), key=lambda play: (play[1], play[0], play[2]))

    return store.read(read).result()


def played(summary_of: Import, store: Store, **names: object) -> list[int]:
    """Return the tracks that a row with these names is counted for."""
    summary_of([{"played_at": NOW // SECOND - 60} | names])
    return [track for track, _, _ in kept(store)]
