"""Playlists and their tracks on the way in: found or made, and only what is not there yet appended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import bulk, dialect
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.models import Playlist, PlaylistTrack
from musicsvc.store.playlists import playlists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Pair = tuple[int, int]  # a playlist and a track


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose playlists these are, and whether new ones are public."""

    owner: int
    public: bool
    now: int
    dry_run: bool


class Named(NamedTuple):
    """A playlist of the owner; ids below 0 are those of a dry run."""

    id: int
    external_id: str | None
    name: str


@dataclass(slots=True)
class Memory:
    """What outlives a unit: which playlists are counted already; of a dry run also what it has not written."""

    counted: set[int] = field(default_factory=set)
    unwritten: list[Named] = field(default_factory=list)
    entries: set[Pair] = field(default_factory=set)


class Shelf:
    """The owner's playlists that rows may mean, the oldest first."""

    def __init__(self, found: Iterable[Named]) -> None:
        self._by_id: dict[str, Named] = {}
        self._by_name: dict[str, list[Named]] = {}
        self.made: list[Named] = []
        for each in found:
            self._put(each)

    def _put(self, each: Named) -> None:
        if each.external_id is not None:
            self._by_id[each.external_id] = each
        self._by_name.setdefault(each.name, []).append(each)

    def find(self, external_id: str | None, name: str) -> Named | None:
        """By external id; without one by name, of several the oldest, those without an external id first."""
        if external_id is not None:
            return self._by_id.get(external_id)
        return min(self._by_name.get(name, ()), key=lambda each: each.external_id is not None, default=None)

    def add(self, each: Named) -> Named:
        """Keep a playlist that was made."""
        self._put(each)
        self.made.append(each)
        return each


def place(wanted: Sequence[tuple[str | None, str]], scope: Scope, memory: Memory) -> tuple[list[int], list[Named]]:
    """The id of the playlist of each (external id, name), and the playlists made for it."""
    shelf = Shelf([*_held(wanted, scope), *memory.unwritten])
    ids = []
    for external_id, name in wanted:
        found = shelf.find(external_id, name)
        if found is None:
            unwritten = -1 - len(memory.unwritten) - len(shelf.made)
            made = unwritten if scope.dry_run else _make(external_id, name, scope)
            found = shelf.add(Named(made, external_id, name))
        ids.append(found.id)
    return ids, shelf.made


def _held(wanted: Sequence[tuple[str | None, str]], scope: Scope) -> list[Named]:
    """The owner's playlists of these external ids and names, locked where the unit writes, by id."""
    found: dict[int, Named] = {}
    for column, values in (
        (Playlist.external_id, {external_id for external_id, _ in wanted if external_id is not None}),
        (Playlist.name, {name for external_id, name in wanted if external_id is None}),
    ):
        for some in dialect.batches(sorted(values)):
            query = Playlist.select(Playlist.id, Playlist.external_id, Playlist.name)
            query = query.where(Playlist.owner == scope.owner, column.in_(some)).order_by(Playlist.id)
            rows = (query if scope.dry_run else lock_rows(query)).tuples().iterator()
            found |= {row[0]: Named(*row) for row in rows}
    return [found[playlist_id] for playlist_id in sorted(found)]


def _make(external_id: str | None, name: str, scope: Scope) -> int:
    if external_id is not None:
        return playlists.ensure_imported(scope.owner, external_id, name, scope.now, public=scope.public)
    made = Playlist.create(owner=scope.owner, name=name, public=scope.public, created_at=scope.now)
    return int(made.id)


def append(pairs: Iterable[Pair], scope: Scope, memory: Memory) -> set[Pair]:
    """Put the tracks at the ends of their playlists, in this order, but those that are in them; which these were."""
    once = list(dict.fromkeys(pairs))
    there = memory.entries.union(_there(once))
    new = [pair for pair in once if pair not in there]
    if not scope.dry_run:
        ids = bulk.ids(PlaylistTrack, len(new))
        rows = [(entry_id, *pair, scope.owner, scope.now) for entry_id, pair in zip(ids, new, strict=True)]
        bulk.insert(PlaylistTrack, ("id", "playlist", "track", "added_by", "added_at"), rows)
    return set(new)


def _there(pairs: Sequence[Pair]) -> Iterator[Pair]:
    for some in dialect.batches(pairs):
        playlist_ids, track_ids = ({pair[side] for pair in some} for side in (0, 1))
        query = PlaylistTrack.select(PlaylistTrack.playlist, PlaylistTrack.track).distinct()
        inside = PlaylistTrack.playlist.in_(playlist_ids) & PlaylistTrack.track.in_(track_ids)
        yield from query.where(inside).tuples().iterator()
