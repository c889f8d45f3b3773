"""Merges, and what imports could change."""

from functools import partial
from typing import Any

from musicsvc.store.editing import merging
from musicsvc.store.editing.merging import MergePreview, Noun
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Play,
    Playlist,
    PlaylistTrack,
    Track,
    TrackArtist,
)
from tests.conftest import NOW

FIRST_PAGE = Page(1, 20)


def merge(store: Store, noun: Noun, source: int, target: int, **more: Any) -> MergePreview:
    return store.write(partial(merging.merge, noun, source, target, now=NOW, **more)).result()


def contents() -> list[Any]:
    """Return what an import could change; within a unit."""
    tables = (Artist, Album, AlbumArtist, Track, TrackArtist, Playlist, PlaylistTrack, Play)
    return [sorted(map(str, table.select().dicts())) for table in tables]
