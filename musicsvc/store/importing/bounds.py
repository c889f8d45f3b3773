"""The bounds of albums in an import: a row that would bring its album beyond one is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from musicsvc.store.catalog import sizes
from musicsvc.store.catalog.sizes import EMPTY, AlbumSize
from musicsvc.store.importing.summary import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from musicsvc.store.importing.rows import Row


class ExceededError(Exception):
    """Rows of a batch would bring an album beyond its bounds; `refused` holds them by line."""

    def __init__(self, refused: Mapping[int, Refusal]) -> None:
        super().__init__(f"{len(refused)} rows exceed the bounds of an album")
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Placed:
    """A track on an album, or on none."""

    album: int | None = None
    size: AlbumSize = EMPTY


@dataclass(slots=True)
class Bounds:
    """The sizes of the albums that a batch changes, followed row by row.

    `strict`: once a row of an album is refused, so are all its later rows in the batch.
    """

    strict: bool = False
    albums: dict[int, AlbumSize] = field(default_factory=dict)  # by id
    growth: dict[int, AlbumSize] = field(default_factory=dict)  # of an album itself, without its tracks, by line
    refused: dict[int, Refusal] = field(default_factory=dict)  # by line
    _artists: dict[int, int] = field(default_factory=dict)
    _full: dict[int, str] = field(default_factory=dict)  # the bound that each exceeded

    def load_artists(self, ids: Iterable[int], names: Mapping[str, int]) -> None:
        """Measure these artists; those that a dry run has not written are found in `names`."""
        missing = set(ids) - self._artists.keys()
        stored = {artist_id for artist_id in missing if artist_id > 0}
        if stored:
            self._artists |= sizes.of_artists(stored)
        if made := missing - stored:
            self._artists |= {each: sizes.new_artist(name) for name, each in names.items() if each in made}

    def artists(self, ids: Iterable[int]) -> int:
        """The bytes of these artists."""
        return sum(self._artists[artist_id] for artist_id in ids)

    def place(self, values: Mapping[str, Any]) -> Placed:
        """Where a track with these values is, and what it adds to its album."""
        if values["album"] is None:
            return Placed()
        image = values["image"]
        own = sizes.TRACK + sum(sizes.text(values[name]) for name in ("name", "release_date", "description"))
        own += self.artists(values["artists"]) + (0 if image is None else sizes.text(image))
        return Placed(values["album"], AlbumSize(1, int(image is None), own, 0))

    def follow(self, row: Row, album: int | None, before: Placed, after: Placed) -> None:
        """Take in what a row does to its own album and to that of its track, which may be another; or refuse it."""
        changes = {} if after.album is None else {after.album: after.size}
        if before.album is not None:
            changes[before.album] = changes.get(before.album, EMPTY).minus(before.size)
        if album is not None and row.line in self.growth:
            changes[album] = changes.get(album, EMPTY).plus(self.growth[row.line])
        sizes_after = {each: self.albums[each].plus(change) for each, change in changes.items()}
        for each, new in sizes_after.items():
            old = self.albums[each]
            if new.excess and (new.tracks > old.tracks or new.total > old.total):
                self._full[each] = new.excess
            elif not (self.strict and each in self._full):
                continue
            reason = self._full[each]
            names = (row.album,) if row.album is not None and each == album else ()
            self.refused[row.line] = Refusal(row.line, reason[0].lower() + reason[1:].rstrip("."), names)
            return
        self.albums |= sizes_after
