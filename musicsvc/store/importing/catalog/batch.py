"""The state of a catalog import: what one batch of rows changes, and what later batches need to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from musicsvc.store.catalog import sizes
from musicsvc.store.catalog.sizes import AlbumSize
from musicsvc.store.importing.catalog.bounds import AlbumBounds
from musicsvc.store.importing.summary import KINDS, Counts, Refusal
from musicsvc.store.importing.undoing.runs import ADDED, NO_RUN, Changes

# Bits of ItemState.given; lower ones are fields.
COUNTED = 1 << 30  # the item has been counted
LED = 1 << 29  # a row has named the artists that come first on the album
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ImportScope:
    """Values for all rows of an import. `manager` is the id of the account that manages the artists, or None."""

    manager: int | None
    now: int
    dry_run: bool
    run: int = NO_RUN  # the id of the import

    @property
    def imported_for(self) -> int:
        """The manager's id, or 0 without a manager. External ids are unique per manager."""
        return self.manager or 0


@dataclass(slots=True)
class ItemState:
    """An album or track, with the values from the rows read so far. The first row with a value for a field sets it."""

    id: int  # negative if a dry run would have created it
    values: dict[str, Any]
    name_key: Key = ()  # identifies the item in rows without an external id
    given: int = 0  # bit mask of the fields that rows of this import have set
    new: bool = False
    changed: set[str] = field(default_factory=set)
    before: dict[str, Any] = field(default_factory=dict)  # the values of the changed fields before this batch
    added: dict[str, dict[Any, Any]] = field(default_factory=dict)
    order_before: list[int] | None = None  # the artists before this batch, if their order has changed
    size: AlbumSize = sizes.NEW_ALBUM  # of the album before this batch; unused for tracks

    def apply(self, offered: Mapping[str, Any]) -> tuple[bool, bool]:
        """Set the fields that no earlier row of the import has set.

        Return two truth values: a field changed; a value in `offered` differs from the value of an earlier row.
        """
        altered = differs = False
        for place, (name, value) in enumerate(offered.items()):
            if value is None:
                continue
            same = self.values.get(name) == value
            if self.given & 1 << place:
                differs |= not same
                continue
            self.given |= 1 << place
            if not same:
                self.before.setdefault(name, self.values.get(name))
                self.values[name] = value
                self.changed.add(name)
                altered = True
        return altered, differs

    def add_members(self, name: str, more: Mapping[Any, Any]) -> bool:
        """Add the artists, genres or tags (`name`) that the album or track lacks. Return True if any was added."""
        members: dict[Any, Any] = self.values[name]
        fresh = {key: value for key, value in more.items() if key not in members}
        members.update(fresh)
        self.added.setdefault(name, {}).update(fresh)
        return bool(fresh)

    def put_first(self, artists: Sequence[int]) -> bool:
        """Put these artists of the album first, unless an earlier row of the import has. Return True if any moved."""
        if not artists or self.given & LED:
            return False
        self.given |= LED
        before = list(self.values["artists"])
        self.values["artists"] = dict.fromkeys([*artists, *before])
        moved = list(self.values["artists"]) != before
        if moved:
            self.order_before = [each for each in before if each not in self.added.get("artists", {})]
        return moved

    def changes(self, **added: list[int]) -> Changes:
        """Return the old and new values of changed fields, and the ids in `added`, as stored to undo the import.

        `added`: for each field (artists, genres, tags), the ids that were added to the album or track.
        """
        fields = {name: [self.before[name], self.values[name]] for name in sorted(self.changed)}
        if self.order_before is not None:
            fields["artists"] = [self.order_before, [*self.values["artists"]]]
        return fields | {ADDED + name: ids for name, ids in added.items() if ids}

    @property
    def altered(self) -> bool:
        """True if the batch has changed a field or the order of artists, or added an artist, genre or tag."""
        return bool(self.changed or any(self.added.values()) or self.order_before is not None)

    def copy(self) -> ItemState:
        """Return an independent copy with the current values, in which no field counts as changed."""
        values = {name: dict(value) if isinstance(value, dict) else value for name, value in self.values.items()}
        return replace(self, values=values, new=False, changed=set(), before={}, added={}, order_before=None)


@dataclass(slots=True)
class ImportMemory:
    """Results of finished batches: the fields that rows have set, and the rows that a dry run did not write."""

    given: dict[str, dict[int, int]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    artists: dict[str, int] = field(default_factory=dict)
    genres: set[str] = field(default_factory=set)
    states: dict[str, dict[Key, ItemState]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    named: dict[str, dict[Key, list[int]]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    sizes: dict[int, AlbumSize] = field(default_factory=dict)
    last_id: int = 0

    def absorb(self, batch: Batch) -> None:
        """Add the parts of a finished batch that later batches need."""
        for kind, states in batch.states.items():
            self.given[kind].update({state.id: state.given for state in states.values() if state.given})
            if batch.scope.dry_run:
                self._keep(kind, {key: state for key, state in states.items() if state.id < 0 or state.altered})
        if batch.scope.dry_run:
            self.artists |= batch.new_artists
            self.genres |= batch.new_genres
            self.sizes |= batch.bounds.albums
            self.last_id = batch.last_id

    def _keep(self, kind: str, states: Mapping[Key, ItemState]) -> None:
        self.states[kind] |= states
        for key, state in states.items():
            ids = self.named[kind].setdefault(state.name_key, [])
            if key == ("#", state.id) and state.id not in ids:
                ids.append(state.id)


class Batch:
    """The changes made by one batch of rows. `memory` gets them only after the transaction, which may be retried."""

    def __init__(
        self, scope: ImportScope, memory: ImportMemory, refused: Mapping[int, Refusal], *, strict: bool
    ) -> None:
        self.scope = scope
        self.memory = memory
        self.counts = {kind: Counts() for kind in KINDS}
        self.notes: Counter[str] = Counter()
        self.differing: set[int] = set()  # numbers of lines that contradict an earlier line
        self.new_artists: dict[str, int] = {}
        self.new_genres: set[str] = set()
        self.states: dict[str, dict[Key, ItemState]] = {"albums": {}, "tracks": {}}
        self.named: dict[str, dict[Key, list[ItemState]]] = {"albums": {}, "tracks": {}}
        self.last_id = memory.last_id
        self.bounds = AlbumBounds(strict)
        self.refused = refused  # by earlier attempts, by line number

    def measure(self, album_ids: Collection[int]) -> dict[int, AlbumSize]:
        """Return the size of each album before this batch, by album id."""
        known = {each: self.memory.sizes[each] for each in album_ids if each in self.memory.sizes}
        stored = set(album_ids) - known.keys()
        return known | sizes.measure_albums(stored)

    def next_dry_run_id(self) -> int:
        """Return a new negative id for an album or track that is not stored yet."""
        self.last_id -= 1
        return self.last_id

    def find(self, kind: str, key: Key) -> ItemState | None:
        """Return the album or track (`kind`) with this key, the first one if several have the same name, or None."""
        if key[0] != "name":
            return self.states[kind].get(key)
        return next((state for state in self.named[kind].get(key, ()) if state.name_key == key), None)

    def index(self, kind: str, state: ItemState, external_id: str | None, name_key: Key) -> None:
        if external_id is not None:
            self.states[kind].setdefault(("id", external_id), state)
        state.name_key = name_key
        namesakes = self.named[kind].setdefault(name_key, [])
        if not any(state is other for other in namesakes):
            namesakes.append(state)

    def get(self, kind: str, state_id: int) -> ItemState | None:
        """Return the album or track (`kind`) with this id from this batch or an earlier dry-run batch, or None."""
        loaded = self.states[kind].get(("#", state_id))
        if loaded is not None:
            return loaded
        kept = self.memory.states[kind].get(("#", state_id))
        return None if kept is None else self.add(kind, kept.copy())

    def add(self, kind: str, state: ItemState) -> ItemState:
        """Add an album or track (`kind`) to the batch, and mark the fields that rows of earlier batches have set."""
        state.given = self.memory.given[kind].get(state.id, 0)
        if kind == "albums":
            state.size = self.memory.sizes.get(state.id, state.size)
        self.states[kind]["#", state.id] = state
        return state

    def load_unwritten(self, kind: str, key: Key) -> None:
        """Add the albums or tracks with this key that earlier batches of a dry run created or changed to the batch."""
        state = self.memory.states[kind].get(key)
        ids = self.memory.named[kind].get(key, ()) if state is None else (state.id,)
        for state_id in ids:
            known = self.get(kind, state_id)
            if known is not None:
                self.index(kind, known, key[1] if key[0] == "id" else None, known.name_key)
                if key[0] != "name":
                    self.states[kind].setdefault(key, known)

    def count(self, kind: str, state: ItemState, *, altered: bool) -> None:
        """Count the first row of an album or track as new or (if `altered`) changed, and all other rows as repeated."""
        counts = self.counts[kind]
        if state.given & COUNTED or not (state.new or altered):
            counts.repeated += 1
            return
        state.given |= COUNTED
        if state.new:
            counts.new += 1
        else:
            counts.changed += 1
