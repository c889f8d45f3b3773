"""Three tracks, an account that reports their plays, and their figures."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from musicsvc.clock import DAY, SECOND
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support import play_counts

TODAY = NOW // DAY
# The kind and id of each subject, and its tracks.
SUBJECTS = (
    (TRACK, 1, [1]),
    (TRACK, 2, [2]),
    (TRACK, 3, [3]),
    (ALBUM, 1, [1, 2]),
    (ARTIST, 1, [1, 2]),
    (ARTIST, 2, [2, 3]),
)
PLAYED = (0, 1, 2, 31, 40, 70)  # days ago
SPANS = [
    *((TODAY - back, TODAY + 1 - back) for back in PLAYED),
    (TODAY - 79, TODAY + 1),
    (0, play_counts.ALL_TIME),
]


def world() -> None:
    """Tracks 1 and 2 on album 1 by artist 1, track 2 by artist 2 as well, track 3 by artist 2 alone, on no album."""
    for number in (1, 2):
        Artist.create(name=f"Artist {number}", created_at=NOW)
    Album.create(name="Album", created_at=NOW)
    for album in (1, 1, None):
        Track.create(name="Track", duration=1, album=album, created_at=NOW)
    for track, artist, position in ((1, 1, 0), (2, 1, 0), (2, 2, 1), (3, 2, 0)):
        TrackArtist.create(track=track, artist=artist, position=position)


def account(*, reports_plays: bool, email: str = "ann@label.test") -> Identity:
    user = users.create(email, api_access=True, now=NOW)
    user.reports_plays = reports_plays
    user.save()
    found = tokens.identify(tokens.digest(tokens.create(user, "test", now=NOW)[1]))
    assert found is not None
    return found


def report(store: Store, heard: Sequence[ReportedPlay], actor: Identity, now: int = NOW) -> ingest.IngestOutcome:
    return store.write(lambda: ingest.report(heard, now=now, actor=actor)).result()


def read_figures() -> dict[Any, tuple[int, list[int]]]:
    """Return plays and listeners of every subject by day, over a long window and of all time; within a unit."""
    found = {}
    for kind, subject, _ in SUBJECTS:
        for first, end in SPANS:
            heard = play_counts.over(kind, subject, first, end)
            found[kind, subject, first, end] = (heard.plays, sorted(heard.listeners))
    return found


def figures(store: Store) -> dict[Any, tuple[int, list[int]]]:
    return store.read(read_figures).result()


def numbers(found: Mapping[Any, tuple[int, Collection[object]]]) -> dict[Any, tuple[int, int]]:
    """Return the numbers of plays and of listeners in such figures."""
    return {key: (count, len(people)) for key, (count, people) in found.items()}


def recounted(heard: Sequence[ReportedPlay]) -> tuple[dict[Any, tuple[int, set[str | None]]], int]:
    """Count the same figures in plain Python."""
    taken = {
        (play.track_id, play.listener, play.client_id or ("slot", play.played_at // (30 * SECOND))): play
        for play in heard
    }
    found = {}
    for kind, subject, tracks in SUBJECTS:
        for first, end in SPANS:
            mine = [play for play in taken.values() if play.track_id in tracks and first <= play.played_at // DAY < end]
            found[kind, subject, first, end] = (len(mine), {play.listener for play in mine})
    return found, len(taken)
