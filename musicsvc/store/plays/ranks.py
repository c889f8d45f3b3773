"""Store the tracks of artists with thousands of tracks in order of plays (table `track_rank`).

Triggers add an artist's tracks to the table when their list becomes long (`list_blocks`), and then
add and remove single tracks. Numbers of plays change far more often, and a trigger would take 2 µs for every play. So
functions that change a number of plays call `moving` instead.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from peewee import fn

from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.sql import compiled, in_list, run, run_many
from musicsvc.store.models import ListBlock, TrackRank

RANKED = """
    SELECT l.artist_id, coalesce(p.plays, 0), l.track_id
    FROM track_artist l LEFT JOIN track_plays p ON p.track_id = l.track_id
    WHERE l.track_id {among} AND l.artist_id {artists}
"""


@contextmanager
def moving(track_ids: Collection[int]) -> Iterator[None]:
    """Update the tracks in the table `track_rank` after the `with` block, which changes their numbers of plays."""
    artists = [artist for (artist,) in _artists()]
    if not artists:
        yield
        return
    (among, tracks), (by, ranked) = in_list(track_ids), in_list(artists)
    rows = RANKED.format(among=among, artists=by)
    run(f"DELETE FROM track_rank WHERE (artist_id, plays, track_id) IN ({rows})", tracks, ranked)  # noqa: S608 - ours
    yield
    run(f"INSERT INTO track_rank (artist_id, plays, track_id) {rows}", tracks, ranked)


@compiled
def _artists() -> Any:
    ranks = TrackRank.select(TrackRank.artist).where(TrackRank.artist == ListBlock.owner)
    return (
        ListBlock.select(ListBlock.owner)
        .distinct()
        .where(ListBlock.list == list_blocks.ARTIST_TRACKS.number, fn.EXISTS(ranks))
    )


def replace(totals: Mapping[int, int | None]) -> None:
    """Set the all-time numbers of plays of tracks; None: there is none."""
    with moving(totals):
        run_many("DELETE FROM track_plays WHERE track_id = ?", [(track,) for track in totals])
        kept = [(track, plays) for track, plays in totals.items() if plays is not None]
        run_many("INSERT INTO track_plays (track_id, plays) VALUES (?, ?)", kept)
