"""The plays that `recount.py` counts: three years with everything that a recount must get right."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from peewee import fn
from worlds import BATCH, FIGURE_TRACKS, NOW, TRACKS_AN_ARTIST, Stream, add, artist_of, label, record

from musicsvc.clock import DAY
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, merging
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays.periods import SLOT
from tests.support.listening_world import withdraw

RECOUNTED_DAYS = 1_100  # with a leap day
UNDONE, UNDONE_PLAYS = 1, 20_000
CORRECTED = range(40, 840, 200)  # tracks that are deleted and merged in turn
# Every fifth track has two artists, every eleventh no length; every seventh half minute has plays without duration.
SHARED, MEASURED, TIMED = 5, 11, 7


def fill(store: Store, count: int) -> None:
    """Record plays. A hundredth is late, some of these at midnight; undo an import, delete and merge tracks."""
    store.write(partial(label, TRACKS_AN_ARTIST)).result()
    store.write(_vary_tracks).result()
    stream = Stream(count, RECOUNTED_DAYS * DAY, 0)
    for _ in range(count // BATCH):
        store.write(partial(record, _without_some_durations(stream.batch(BATCH)))).result()
    late = Stream(count // 100, RECOUNTED_DAYS * DAY, 0, seed=2).batch(count // 100)
    store.write(partial(record, [*_without_some_durations(late), *_at_midnight(late[::10])])).result()
    undone = Stream(UNDONE_PLAYS, 30 * DAY, 0, seed=3).batch(UNDONE_PLAYS)
    store.write(partial(record, [row._replace(import_id=UNDONE) for row in undone])).result()
    withdraw(store, UNDONE)
    store.write(partial(_correct_tracks, CORRECTED)).result()


def _vary_tracks() -> None:
    Track.update(duration=0).where(Track.id % MEASURED == 0).execute()
    artists = Artist.select(fn.max(Artist.id)).scalar()
    pairs = ((n, n % artists + 1) for n in range(SHARED, FIGURE_TRACKS + 1, SHARED))
    second = ((track, artist, 1) for track, artist in pairs if artist != artist_of(track, TRACKS_AN_ARTIST))
    add(TrackArtist, "track artist position", second)


def _without_some_durations(rows: Iterable[PlayRow]) -> list[PlayRow]:
    return [row if row.slot % TIMED else row._replace(duration_ms=None) for row in rows]


def _at_midnight(rows: Iterable[PlayRow]) -> Iterator[PlayRow]:
    """Yield plays of the same tracks and listeners, in the last microsecond before midnight, or in the first after."""
    for number, row in enumerate(rows):
        at = row.played_at // DAY * DAY - number % 2
        yield row._replace(slot=at // SLOT, played_at=at)


def _correct_tracks(some: Sequence[int]) -> None:
    """Delete each second track, and merge the others into the one before it."""
    for number in some[::2]:
        deletions.delete(tracks.get(number), now=NOW, account=None, actor="cli")
    for number in some[1::2]:
        merging.merge("track", number, number - 1, now=NOW)
