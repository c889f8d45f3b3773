"""Tracks that move to another album or other artists take their plays along: those rows are made anew from theirs."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.plays.rollups import daily, days_reader, listeners, monthly, weekly
from musicsvc.store.plays.rollups import subjects as rollups
from musicsvc.store.plays.rollups.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

MEMBERS = {
    ALBUM: "SELECT id FROM track WHERE album_id = ?",
    ARTIST: "SELECT track_id FROM track_artist WHERE artist_id = ?",
}
MADE = "SELECT DISTINCT block FROM play_block WHERE kind = ? AND subject {among} AND block < ?"
FROM_TRACKS = """
    SELECT day, plays, listeners FROM play_day WHERE day {days} AND kind = 1 AND subject {tracks} ORDER BY day
"""
DELETE = "DELETE FROM play_{span} WHERE {which} kind = ? AND subject = ?"


@contextmanager
def following(tracks: Collection[int]) -> Iterator[None]:
    """Within this, the tracks' albums and artists are changed; afterwards their plays are counted where they belong."""
    played = days_reader.plays_ever(TRACK, tracks) if tracks else {}
    before = rollups.subjects_of(played)
    yield
    after = rollups.subjects_of(played)
    changed = {each for track in played for each in {*before[track]} ^ {*after[track]}}
    if changed:
        rebuild(changed)


def rebuild(subjects: Iterable[tuple[int, int]]) -> None:
    """Make the rows of these albums and artists, as (kind, id), anew from those of their tracks."""
    daily.lock()
    mark = monthly.mark()
    for kind, subject in sorted(subjects):
        _rebuild(kind, subject, mark)


def _rebuild(kind: int, subject: int, mark: monthly.Mark) -> None:
    tracks = [row[0] for row in fetch(MEMBERS[kind], subject)]
    days, values = dialect.in_list(_days(kind, subject, tracks, mark))
    run(DELETE.format(span="day", which=f"day {days} AND"), values, kind, subject)
    weekly.forget(kind, subject)
    run(DELETE.format(span="block", which=""), kind, subject)
    among, ids = dialect.in_list(tracks)
    found = fetch(FROM_TRACKS.format(days=days, tracks=among), values, ids)
    daily.put(daily.DAYS, [(day, kind, subject, *tally) for day, tally in _sums(found).items()])
    whole = ((day // monthly.DAYS, plays, packed) for day, plays, packed in found)
    made = _sums(row for row in whole if mark.passed(row[0], kind, subject))
    daily.put(daily.BLOCKS, [(kind, subject, block, *tally) for block, tally in made.items()])


def _days(kind: int, subject: int, tracks: Collection[int], mark: monthly.Mark) -> list[int]:
    """Every day on which it has a row, or one of its tracks has."""
    found = {*monthly.open_days(mark)}
    for of_kind, ids in ((kind, [subject]), (TRACK, tracks)):
        among, values = dialect.in_list(ids)
        query = MADE.format(among=among)
        for (block,) in fetch(query, of_kind, values, mark.block):
            found.update(range(block * monthly.DAYS, (block + 1) * monthly.DAYS))
    return sorted(found)


def _sums(rows: Iterable[tuple[int, int, bytes]]) -> dict[int, tuple[int, bytes]]:
    """The plays and the united sets of the rows with the same number."""
    plays: dict[int, int] = defaultdict(int)
    sets: dict[int, list[bytes]] = defaultdict(list)
    for number, count, packed in rows:
        plays[number] += count
        sets[number].append(packed)
    return {number: (plays[number], listeners.merge(some)) for number, some in sets.items()}
