"""Search for artists, albums and tracks by name, albums also by UPC and tracks by ISRC. The best matches come first."""

from collections.abc import Collection
from typing import Any

from musicsvc.store.catalog import albums, artists, identifiers, merged, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engine.name_index import ALBUMS, ARTISTS, TRACKS
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Album, Merged, Track

MOST = 10  # results of each kind


def find_artists(text: str) -> list[ArtistRow]:
    """Return artists whose names contain the text."""
    return artists.find(ARTISTS.find(text, MOST))


def find_albums(text: str) -> Listing[AlbumRow]:
    """Return albums with the text as their UPC, newest first, then albums whose names contain the text."""
    codes = identifiers.spellings_of_upc(text)
    exact = [each for (each,) in _albums_by_upc(codes, MOST)] if codes else []
    return _listing(exact, ALBUMS.find(text, MOST), albums.find)


def find_tracks(text: str) -> Listing[TrackRow]:
    """Return tracks with the text as their ISRC, newest first, then tracks whose names contain the text."""
    code = identifiers.as_isrc(text)
    exact = [each for (each,) in _tracks_by_isrc([code], MOST)] if code else []
    return _listing(exact, TRACKS.find(text, MOST), tracks.find)


def _listing(exact: list[int], named: list[int], load: Any) -> Listing[Any]:
    ids = list(dict.fromkeys(exact + named))[:MOST]
    return Listing(ids, len(ids), Page(1, MOST), load)


@compiled
def _albums_by_upc(codes: Collection[str], limit: int) -> Any:
    return _by_code(Album, Album.upc.in_(codes), merged.ALBUM, codes, limit)


@compiled
def _tracks_by_isrc(codes: Collection[str], limit: int) -> Any:
    return _by_code(Track, Track.isrc.in_(codes), merged.TRACK, codes, limit)


def _by_code(table: type[Album | Track], has_code: Any, kind: int, codes: Collection[str], limit: int) -> Any:
    """Return a query for the ids of rows with one of these codes, or into which one with such a code was merged."""
    others = Merged.select(Merged.into).where(Merged.kind == kind, Merged.code.in_(codes))
    ids = table.select(table.id).where(has_code).union(others)
    return table.select(table.id).where(table.id.in_(ids)).order_by(table.id.desc()).limit(limit)
