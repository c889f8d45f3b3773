"""Rank tracks and albums by plays: the tracks of an album, and the tracks and albums of an artist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups.reader import NO_PLAYS, Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, TRACK

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window

TOP = 10
TRACKS_OF_ALBUM = "SELECT id, name FROM track WHERE album_id = ?"
TRACKS_OF_ARTIST = "SELECT t.id, t.name FROM track_artist l JOIN track t ON t.id = l.track_id WHERE l.artist_id = ?"
ALBUMS_OF_ARTIST = "SELECT t.id, t.name FROM album_artist l JOIN album t ON t.id = l.album_id WHERE l.artist_id = ?"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A track or album in a ranking, with all-time plays (`plays_total`), and plays and listeners in the window."""

    id: int
    name: str
    plays_total: int
    plays: int
    listeners: int


def tracks_of_album(album_id: int, window: Window) -> list[Ranked]:
    """Return all tracks of the album, most played in the window first."""
    return _ranked(TRACK, TRACKS_OF_ALBUM, album_id, window)


def tracks_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten most played tracks in the window."""
    return _ranked(TRACK, TRACKS_OF_ARTIST, artist_id, window, TOP)


def albums_of_artist(artist_id: int, window: Window) -> list[Ranked]:
    """Return the artist's ten most played albums in the window."""
    return _ranked(ALBUM, ALBUMS_OF_ARTIST, artist_id, window, TOP)


def _ranked(kind: int, members: str, owner: int, window: Window, top: int | None = None) -> list[Ranked]:
    names = dict(fetch(members, owner))
    ever = all_time_plays(kind, names)
    reader = Reader(window, all_time=False)
    plays = reader.plays(kind, ever)
    order = sorted(names, key=lambda each: (-plays.get(each, 0), -ever.get(each, 0), -each))[:top]
    # Listener sets are slow to read, so only those of returned rows are read.
    stats = reader.read(kind, [each for each in order if each in plays])
    shown = {each: stats.get(each, [NO_PLAYS])[0] for each in order}
    return [
        Ranked(each, names[each], ever.get(each, 0), some.plays, len(some.listeners)) for each, some in shown.items()
    ]
