"""What is known while rows become albums and tracks: within a batch, and from batch to batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from musicsvc.store.catalog import sizes
from musicsvc.store.importing.bounds import Bounds
from musicsvc.store.importing.summary import KINDS, Counts, Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from musicsvc.store.catalog.sizes import AlbumSize

COUNTED = 1 << 30
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom an import is for; `manager` None stands for nobody."""

    manager: int | None
    now: int
    dry_run: bool

    @property
    def imported_for(self) -> int:
        """Whose external ids these are."""
        return self.manager or 0


@dataclass(slots=True)
class State:
    """An album or a track as the rows so far leave it; ids below 0 are those of a dry run.

    `given` has a bit for each field that a row of this import has set: the first row that gives a field decides it,
    so that a second import of the same file finds nothing to change.
    """

    id: int
    values: dict[str, Any]
    name_key: Key = ()  # what rows without an external id find it by, as of now
    given: int = 0
    new: bool = False
    changed: set[str] = field(default_factory=set)
    added: dict[str, dict[Any, Any]] = field(default_factory=dict)
    size: AlbumSize = sizes.NEW_ALBUM  # of an album, before the batch

    def take(self, offered: Mapping[str, Any]) -> tuple[bool, bool]:
        """Take over what no earlier row gave: whether that changed anything, and whether the rows differ."""
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
                self.values[name] = value
                self.changed.add(name)
                altered = True
        return altered, differs

    def unite(self, name: str, more: Mapping[Any, Any]) -> bool:
        """Add to the collection of that name what it has not: whether there was any."""
        held: dict[Any, Any] = self.values[name]
        fresh = {key: value for key, value in more.items() if key not in held}
        held.update(fresh)
        self.added.setdefault(name, {}).update(fresh)
        return bool(fresh)

    @property
    def altered(self) -> bool:
        """Whether the batch has changed it or added to it."""
        return bool(self.changed or any(self.added.values()))

    def copy(self) -> State:
        """The same state with nothing pending, free to be changed."""
        values = {name: dict(value) if isinstance(value, dict) else value for name, value in self.values.items()}
        return replace(self, values=values, new=False, changed=set(), added={})


@dataclass(slots=True)
class Memory:
    """What outlives a batch: which fields were given; in a dry run also what was not written."""

    given: dict[str, dict[int, int]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    artists: dict[str, int] = field(default_factory=dict)
    genres: set[str] = field(default_factory=set)
    states: dict[str, dict[Key, State]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    named: dict[str, dict[Key, list[int]]] = field(default_factory=lambda: {"albums": {}, "tracks": {}})
    sizes: dict[int, AlbumSize] = field(default_factory=dict)
    last_id: int = 0

    def absorb(self, batch: Batch) -> None:
        """Keep what the next batches need, once the batch is through."""
        for kind, states in batch.states.items():
            self.given[kind].update({state.id: state.given for state in states.values() if state.given})
            if batch.scope.dry_run:
                self._keep(kind, {key: state for key, state in states.items() if state.id < 0 or state.altered})
        if batch.scope.dry_run:
            self.artists |= batch.new_artists
            self.genres |= batch.new_genres
            self.sizes |= batch.bounds.albums
            self.last_id = batch.last_id

    def _keep(self, kind: str, states: Mapping[Key, State]) -> None:
        self.states[kind] |= states
        for key, state in states.items():
            ids = self.named[kind].setdefault(state.name_key, [])
            if key == ("#", state.id) and state.id not in ids:
                ids.append(state.id)


class Batch:
    """A few hundred rows on their way in; it leaves the memory as it is, so that a unit can be run again."""

    def __init__(self, scope: Scope, memory: Memory, refused: Mapping[int, Refusal], *, strict: bool) -> None:
        """`refused`: rows that are left out, by line; `strict`: as of Bounds."""
        self.scope = scope
        self.memory = memory
        self.counts = {kind: Counts() for kind in KINDS}
        self.notes: Counter[str] = Counter()
        self.differing: set[int] = set()  # lines that say something else than an earlier one
        self.new_artists: dict[str, int] = {}
        self.new_genres: set[str] = set()
        self.states: dict[str, dict[Key, State]] = {"albums": {}, "tracks": {}}
        self.named: dict[str, dict[Key, list[State]]] = {"albums": {}, "tracks": {}}
        self.last_id = memory.last_id
        self.bounds = Bounds(strict)
        self.refused = refused

    def measure(self, album_ids: Collection[int]) -> dict[int, AlbumSize]:
        """The sizes of these albums before the batch."""
        known = {each: self.memory.sizes[each] for each in album_ids if each in self.memory.sizes}
        stored = set(album_ids) - known.keys()
        return known | (sizes.of_albums(stored) if stored else {})

    def dry_id(self) -> int:
        """An id for something that a dry run does not write."""
        self.last_id -= 1
        return self.last_id

    def find(self, kind: str, key: Key) -> State | None:
        """The state that a row of this key means; of several that go by one name the first."""
        if key[0] != "name":
            return self.states[kind].get(key)
        return next((state for state in self.named[kind].get(key, ()) if state.name_key == key), None)

    def index(self, kind: str, state: State, external_id: str | None, name_key: Key) -> None:
        """Let rows find the state by its external id and by its name."""
        if external_id is not None:
            self.states[kind].setdefault(("id", external_id), state)
        state.name_key = name_key
        namesakes = self.named[kind].setdefault(name_key, [])
        if not any(state is other for other in namesakes):
            namesakes.append(state)

    def known(self, kind: str, state_id: int) -> State | None:
        """The state of this id, where the batch has met it or the dry run remembers it."""
        held = self.states[kind].get(("#", state_id))
        if held is not None:
            return held
        remembered = self.memory.states[kind].get(("#", state_id))
        return None if remembered is None else self.introduce(kind, remembered.copy())

    def introduce(self, kind: str, state: State) -> State:
        """Keep a state that the batch has not met yet, with the fields that earlier batches gave it."""
        state.given = self.memory.given[kind].get(state.id, 0)
        if kind == "albums":
            state.size = self.memory.sizes.get(state.id, state.size)
        self.states[kind]["#", state.id] = state
        return state

    def remember(self, kind: str, key: Key) -> None:
        """Bring in what the dry run has made or changed under this key."""
        state = self.memory.states[kind].get(key)
        ids = self.memory.named[kind].get(key, ()) if state is None else (state.id,)
        for state_id in ids:
            known = self.known(kind, state_id)
            if known is not None:
                self.index(kind, known, key[1] if key[0] == "id" else None, known.name_key)

    def count(self, kind: str, state: State, *, altered: bool) -> None:
        """Count a row's mention of the album or track: new or changed once, repeated else."""
        counts = self.counts[kind]
        if state.given & COUNTED or not (state.new or altered):
            counts.repeated += 1
            return
        state.given |= COUNTED
        if state.new:
            counts.new += 1
        else:
            counts.changed += 1
