"""Find or create the playlists that an import names, and append tracks that are not in them yet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from musicsvc.store.engine import bulk, dialect
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Playlist, PlaylistTrack
from musicsvc.store.playlists import playlists

Entry = tuple[int, int]  # playlist id, track id


@dataclass(frozen=True, slots=True)
class PlaylistScope:
    """The account that owns imported playlists, and whether new ones are public. A dry run writes nothing."""

    owner: int
    public: bool
    now: int
    dry_run: bool
    run: int  # the id of the import


class PlaylistRef(NamedTuple):
    """A reference to a playlist. A dry run gives negative ids to playlists that it would create."""

    id: int
    external_id: str | None
    name: str


@dataclass(slots=True)
class PlaylistMemory:
    """Results of earlier batches: ids of counted playlists, and playlists and tracks that a dry run did not write."""

    counted: set[int] = field(default_factory=set)
    unwritten: list[PlaylistRef] = field(default_factory=list)
    entries: set[Entry] = field(default_factory=set)


class PlaylistIndex:
    """The owner's playlists, by external id and by name."""

    def __init__(self, found: Iterable[PlaylistRef]) -> None:
        self._by_id: dict[str, PlaylistRef] = {}
        self._by_name: dict[str, list[PlaylistRef]] = {}
        self.created: list[PlaylistRef] = []
        for each in found:
            self._put(each)

    def _put(self, each: PlaylistRef) -> None:
        if each.external_id is not None:
            self._by_id[each.external_id] = each
        self._by_name.setdefault(each.name, []).append(each)

    def find(self, external_id: str | None, name: str) -> PlaylistRef | None:
        """Return the playlist with this external id, or None. If the id is None, search by name instead.

        Of several playlists with the name, one without external id is preferred.
        """
        if external_id is not None:
            return self._by_id.get(external_id)
        return min(self._by_name.get(name, ()), key=lambda each: each.external_id is not None, default=None)

    def add(self, each: PlaylistRef) -> PlaylistRef:
        self._put(each)
        self.created.append(each)
        return each


def find_or_create(
    wanted: Sequence[tuple[str | None, str]], scope: PlaylistScope, memory: PlaylistMemory
) -> tuple[list[int], list[PlaylistRef]]:
    """Return the ids of the playlists in `wanted`, (external id, name) pairs, in order, and the created playlists."""
    index = PlaylistIndex([*_load(wanted, scope), *memory.unwritten])
    ids = []
    for external_id, name in wanted:
        found = index.find(external_id, name)
        if found is None:
            unwritten = -1 - len(memory.unwritten) - len(index.created)
            created = unwritten if scope.dry_run else _create(external_id, name, scope)
            found = index.add(PlaylistRef(created, external_id, name))
        ids.append(found.id)
    runs.made(scope.run, Playlist, [created.id for created in index.created])
    return ids, index.created


def _load(wanted: Sequence[tuple[str | None, str]], scope: PlaylistScope) -> list[PlaylistRef]:
    """Return the owner's playlists with these external ids or names, oldest first. Locks them unless in a dry run."""
    found: dict[int, PlaylistRef] = {}
    for column, values in (
        (Playlist.external_id, {external_id for external_id, _ in wanted if external_id is not None}),
        (Playlist.name, {name for external_id, name in wanted if external_id is None}),
    ):
        for some in dialect.batches(sorted(values)):
            query = Playlist.select(Playlist.id, Playlist.external_id, Playlist.name)
            query = query.where(Playlist.owner == scope.owner, column.in_(some)).order_by(Playlist.id)
            rows = (query if scope.dry_run else lock_rows(query)).tuples().iterator()
            found |= {row[0]: PlaylistRef(*row) for row in rows}
    return [found[playlist_id] for playlist_id in sorted(found)]


def _create(external_id: str | None, name: str, scope: PlaylistScope) -> int:
    if external_id is not None:
        return playlists.ensure_imported(scope.owner, external_id, name, scope.now, public=scope.public)
    return int(Playlist.create(owner=scope.owner, name=name, public=scope.public, created_at=scope.now).id)


def append(pairs: Iterable[Entry], scope: PlaylistScope, memory: PlaylistMemory) -> set[Entry]:
    """Append tracks to playlists that lack them. Return the appended (playlist id, track id) pairs."""
    once = list(dict.fromkeys(pairs))
    present = memory.entries.union(_existing(once))
    new = [pair for pair in once if pair not in present]
    if not scope.dry_run:
        ids = bulk.ids(PlaylistTrack, len(new))
        rows = [(entry_id, *pair, scope.owner, scope.now) for entry_id, pair in zip(ids, new, strict=True)]
        bulk.insert(PlaylistTrack, ("id", "playlist", "track", "added_by", "added_at"), rows)
        runs.made(scope.run, PlaylistTrack, ids)
    return set(new)


def _existing(pairs: Sequence[Entry]) -> Iterator[Entry]:
    for some in dialect.batches(pairs):
        playlist_ids, track_ids = ({pair[side] for pair in some} for side in (0, 1))
        query = PlaylistTrack.select(PlaylistTrack.playlist, PlaylistTrack.track)
        inside = PlaylistTrack.playlist.in_(playlist_ids) & PlaylistTrack.track.in_(track_ids)
        yield from query.where(inside).tuples().iterator()
