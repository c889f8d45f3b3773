"""Plays per day and of all time, for tracks, albums and artists, kept up in the transaction of the plays they count."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.store import listeners
from musicsvc.store.database import current, is_sqlite
from musicsvc.store.models import AlbumArtist, PlayDay, PlayTotal, Track, TrackArtist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
SLOTS_A_DAY = 2880
KEYS_A_QUERY = 2000
LOCK = 0x504C4159  # "PLAY"

DAY_SELECT = "SELECT kind, subject, day, plays, listeners FROM play_day WHERE (kind, subject, day) IN (VALUES {rows})"
DAY_UPSERT = """
    INSERT INTO play_day (kind, subject, day, plays, listeners) VALUES ({signs})
    ON CONFLICT (kind, subject, day) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners
"""
TOTAL_SELECT = "SELECT kind, subject, plays, listeners FROM play_total WHERE (kind, subject) IN (VALUES {rows})"
TOTAL_UPSERT = """
    INSERT INTO play_total (kind, subject, plays, listeners) VALUES ({signs})
    ON CONFLICT (kind, subject) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners
"""
Key = tuple[int, ...]


class Counted(NamedTuple):
    """A play that was taken: its track, its half minute, its listener."""

    track: int
    slot: int
    listener: int


def lock() -> None:
    """One at a time keeps the rows up; on SQLite a writing unit is alone anyway."""
    if not is_sqlite():
        current().execute_sql(f"SELECT pg_advisory_xact_lock({LOCK})")


def add(plays: Iterable[Counted]) -> None:
    """Count plays that are new, for their tracks, albums and artists."""
    plays = list(plays)
    subjects = subjects_of({play.track for play in plays})
    days: dict[Key, list[int]] = defaultdict(list)
    for track, slot, listener in plays:
        day = slot // SLOTS_A_DAY
        for kind, subject in subjects[track]:
            days[kind, subject, day].append(listener)
    totals: dict[Key, list[int]] = defaultdict(list)
    for (kind, subject, _), some in days.items():
        totals[kind, subject].extend(some)
    _merge(days, DAY_SELECT, DAY_UPSERT)
    _merge(totals, TOTAL_SELECT, TOTAL_UPSERT)
    _count_tracks(Counter(play.track for play in plays))


def subjects_of(tracks: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
    """What a play of each track counts for, as (kind, id): the track, its album, its artists."""
    found: dict[int, list[tuple[int, int]]] = {track: [(TRACK, track)] for track in tracks}
    ids = list(found)
    for start in range(0, len(ids), KEYS_A_QUERY):
        some = ids[start : start + KEYS_A_QUERY]
        albums = Track.select(Track.id, Track.album).where(Track.id.in_(some), Track.album.is_null(is_null=False))
        for track, album in albums.tuples().iterator():
            found[track].append((ALBUM, album))
        credit = TrackArtist.select(TrackArtist.track, TrackArtist.artist).where(TrackArtist.track.in_(some))
        for track, artist in credit.tuples().iterator():
            found[track].append((ARTIST, artist))
    return found


def _merge(fresh: Mapping[Key, Sequence[int]], select: str, upsert: str) -> None:
    """Add the listeners to the rows of these keys; each entry of a list is a play."""
    width = len(next(iter(fresh), ()))
    keys = sorted(fresh)
    for start in range(0, len(keys), KEYS_A_QUERY):
        some = keys[start : start + KEYS_A_QUERY]
        before = {tuple(row[:width]): row[width:] for row in _rows(select, some)}
        rows = []
        for key in some:
            heard = fresh[key]
            if key in before:
                plays, packed = before[key]
                rows.append((*key, plays + len(heard), listeners.add(packed, heard)))
            else:
                rows.append((*key, len(heard), listeners.pack(heard)))
        _execute_many(upsert.format(signs=", ".join([current().param] * (width + 2))), rows)


def _rows(select: str, keys: Sequence[Key]) -> Any:
    # The keys are integers of our own, written out: a VALUES list of parameters is slower by half.
    values = ", ".join(f"({', '.join(map(str, key))})" for key in keys)
    return current().execute_sql(select.format(rows=values)).fetchall()


def _execute_many(statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        current().cursor().executemany(statement, rows)


def _count_tracks(plays: Mapping[int, int]) -> None:
    sign = current().param
    statement = f"UPDATE track SET plays = plays + {sign} WHERE id = {sign}"  # noqa: S608 - constants
    _execute_many(statement, [(count, track) for track, count in sorted(plays.items())])


def rebuild(kind: int, subject: int) -> None:
    """Make the rows of an album or artist anew from those of its tracks, after its tracks changed."""
    PlayDay.delete().where(PlayDay.kind == kind, PlayDay.subject == subject).execute()
    PlayTotal.delete().where(PlayTotal.kind == kind, PlayTotal.subject == subject).execute()
    of_album = Track.select(Track.id).where(Track.album == subject)
    of_artist = TrackArtist.select(TrackArtist.track).where(TrackArtist.artist == subject)
    plays: dict[int, int] = defaultdict(int)
    packed: dict[int, list[bytes]] = defaultdict(list)
    mine = (PlayDay.kind == TRACK) & PlayDay.subject.in_(of_album if kind == ALBUM else of_artist)
    rows_of_tracks = PlayDay.select(PlayDay.day, PlayDay.plays, PlayDay.listeners).where(mine)
    for day, count, some in rows_of_tracks.tuples().iterator():
        plays[day] += count
        packed[day].append(bytes(some))
    rows = [(kind, subject, day, plays[day], listeners.pack(listeners.union(packed[day]))) for day in sorted(plays)]
    if rows:
        signs = ", ".join([current().param] * 5)
        _execute_many(DAY_UPSERT.format(signs=signs), rows)
        everybody = listeners.pack(listeners.union(row[4] for row in rows))
        PlayTotal.create(kind=kind, subject=subject, plays=sum(plays.values()), listeners=everybody)


def artists_of_album(album: int) -> list[int]:
    """The artists that an album is by, in order."""
    query = AlbumArtist.select(AlbumArtist.artist).where(AlbumArtist.album == album).order_by(AlbumArtist.position)
    return [artist for (artist,) in query.tuples().iterator()]
