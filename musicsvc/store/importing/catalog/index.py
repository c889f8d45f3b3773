"""The albums and tracks that the rows of a batch name: what the rows change, and how they are found by key."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musicsvc.store.catalog.merged import Former
from musicsvc.store.importing.runner import RefusedError
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing.runs import ADDED, Changes

NONE: Mapping[Any, Any] = {}
ANOTHERS = "another account manages the {} with this external id now"
COUNTED = 1 << 30  # a bit of Item.given: the item has been counted
Key = tuple[Any, ...]


class Offer(NamedTuple):
    """The values of a row for an item: the changed fields, those that contradict an earlier row, and a bit mask."""

    changes: Mapping[str, Any]
    differs: Sequence[str]
    given: int  # of all fields for which the row has a value

    def without(self, name: str) -> "Offer":
        """Return the offer without a change of this field."""
        changes = {each: value for each, value in self.changes.items() if each != name}
        return self._replace(changes=changes, differs=[each for each in self.differs if each != name])


UNCHANGED = Offer({}, differs=(), given=0)


class Size(NamedTuple):
    """The number of tracks of an album, those of them that show the album's image, and the bytes of its JSON."""

    tracks: int = 0
    imageless: int = 0
    bytes: int = 0

    def plus(self, tracks: int, imageless: int, more: int) -> "Size":
        return Size(self.tracks + tracks, self.imageless + imageless, self.bytes + more)


NO_SIZE = Size()


@dataclass(slots=True)
class Item:
    """An album or track, with the values from the rows read so far. The first row with a value for a field sets it."""

    id: int
    values: dict[str, Any]
    external_id: str | None = None
    new: bool = False
    given: int = 0  # bit mask of the fields that rows of this import have set
    name_key: Key = ()  # identifies the item in rows without an external id
    before: dict[str, Any] = field(default_factory=dict)  # the values of changed fields before, unless it is new
    added: dict[str, dict[Any, Any]] = field(default_factory=dict)  # artists, genres and tags, unless it is new
    order_before: list[int] | None = None  # the artists of the album before this batch, if their order has changed
    size: Size = NO_SIZE  # of an album

    def compare(self, offered: Mapping[str, Any], bits: Mapping[str, int]) -> Offer:
        """Return what the fields in `offered` would change. Those that an earlier row has set do not change.

        `bits`: those of the fields in a bit mask.
        """
        given = sum(map(bits.__getitem__, offered))
        if self.new and not self.given:
            return Offer(offered, (), given)
        changes: dict[str, Any] = {}
        differs: list[str] = []
        if not offered.items() <= self.values.items():  # most rows of known items change nothing
            for name, value in offered.items():
                if self.values[name] != value:
                    if self.given & bits[name]:
                        differs.append(name)
                    else:
                        changes[name] = value
        return Offer(changes, differs, given)

    def take(self, offer: Offer) -> None:
        self.given |= offer.given
        for name in () if self.new else offer.changes:
            self.before.setdefault(name, self.values[name])
        self.values.update(offer.changes)

    def lacks(self, name: str, members: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return the artists, genres or tags (`name`) that the album or track lacks."""
        present = self.values[name]
        return {key: value for key, value in members.items() if key not in present} if present else members

    def add(self, name: str, fresh: Mapping[Any, Any]) -> None:
        """Add artists, genres or tags (`name`) that the album or track lacks."""
        if fresh:
            self.values[name] |= fresh
            if not self.new:
                self.added.setdefault(name, {}).update(fresh)

    def fresh(self, name: str) -> Mapping[Any, Any]:
        """Return the artists, genres or tags (`name`) that the batch adds."""
        return self.values[name] if self.new else self.added.get(name, NONE)

    def changes(self, **added: list[int]) -> Changes:
        """Return the old and new values of changed fields, and the ids in `added`, as stored to undo the import.

        `added`: for each field (artists, genres, tags), the ids that were added to the album or track.
        """
        fields = {name: [old, self.values[name]] for name, old in sorted(self.before.items())}
        if self.order_before is not None:
            fields["artists"] = [self.order_before, [*self.values["artists"]]]
        return fields | {ADDED + name: ids for name, ids in added.items() if ids}

    @property
    def altered(self) -> bool:
        """True if the batch created it, changed a field or the order of artists, or added an artist, genre or tag."""
        return bool(self.new or self.before or self.added or self.order_before is not None)


class Index(ABC):
    """The albums or the tracks of a batch by id, by external id, ISRC or UPC, and by name if rows name some."""

    def __init__(self, given: Mapping[int, int], *, by_name: bool) -> None:
        """Create an empty index. `given`: by id, the fields that earlier batches of the import have set."""
        self.items: dict[int, Item] = {}
        self.counts = Counts()
        self._given = given
        self._is_by_name = by_name
        self._by_code: dict[Key, Item] = {}
        self._by_name: dict[Key, list[Item]] = {}
        self._former: dict[Key, Item] = {}
        self._of_others: set[str] = set()  # external ids of what was imported for the manager, who lost it since
        self._numbered: set[int] = set()  # what rows find by external id; those of other managers' imports can be alike
        self._own: set[int] = set()  # what the manager has, so that rows may change it

    def keep_own(
        self,
        imported: Sequence[Sequence[Any]],
        named: Iterable[Sequence[Any]],
        formers: Sequence[Former],
        find: Callable[[list[int]], Iterable[Sequence[int]]],
    ) -> tuple[list[Sequence[Any]], list[Former]]:
        """Return what the manager of the import manages: of rows of id and external id, and of what was merged.

        `imported`: what was imported for the manager. `named`: what rows of the file name otherwise. `find`: returns
        rows of those ids that are managed.
        """
        stored = [*imported, *named]
        ids = {row[0] for row in stored} | {former.into for former in formers}
        self._own = {row[0] for row in find([*ids])} if ids else set()
        self._numbered = {row[0] for row in imported}
        self._of_others = {row[1] for row in imported if row[0] not in self._own}
        return [row for row in stored if row[0] in self._own], [each for each in formers if each.into in self._own]

    def require_own(self, external_id: str | None, noun: str) -> None:
        """Raise RefusedError if another account manages what has this external id, or nobody does."""
        if external_id in self._of_others:
            raise RefusedError(ANOTHERS.format(noun), f"{noun}s", (external_id or "",))

    def find(self, key: Key, name: str | None = None) -> Item | None:
        """Return the item with this key, of several the first one written as `name` or else the first one, or None."""
        if key[0] != "name":
            return self._by_code.get(key)
        found = [item for item in self._by_name.get(key, ()) if item.name_key == key]
        return next((item for item in found if item.values["name"] == name), found[0] if found else None)

    def find_former(self, key: Key) -> Item | None:
        """Return the item into which the one with this key was merged. Rows with the key change nothing of it."""
        return self._former.get(key)

    def add_former(self, key: Key, item: Item) -> None:
        """Add the key of what was merged into an item."""
        self._former.setdefault(key, item)

    def load(self, rows: Iterable[Sequence[Any]], fields: Sequence[str]) -> list[Item]:
        """Add stored items, given as rows of id, external id and `fields`. Return them in the order of preference.

        For a row of a file without an external id, items without one come first, then the oldest.
        """
        loaded = []
        for item_id, external_id, *values in sorted(rows, key=lambda row: (row[1] is not None, row[0])):
            if item_id not in self.items:
                item = Item(item_id, dict(zip(fields, values, strict=True)), external_id)
                item.given = self._given.get(item_id, 0)
                self.items[item_id] = item
                loaded.append(item)
        return loaded

    @abstractmethod
    def name_key(self, item: Item) -> Key:
        """Return what identifies the item in rows without an external id."""

    def put(self, item: Item, code: Key = ("upc", None)) -> None:
        """Add a new item, or one whose values have changed, under its keys. `code`: with its ISRC or UPC, or None."""
        self.items[item.id] = item
        if item.external_id is not None and (item.new or item.id in self._numbered):
            self._by_code.setdefault(("id", item.external_id), item)
        if code[1] is not None:
            self._by_code.setdefault(code, item)
        if self._is_by_name and item.name_key != (name_key := self.name_key(item)):
            item.name_key = name_key
            self._by_name.setdefault(name_key, []).append(item)

    def count(self, item: Item, *, altered: bool) -> None:
        """Count the first row of an item as new or (if `altered`) changed, and all other rows as repeated."""
        if item.given & COUNTED or not (item.new or altered):
            self.counts.repeated += 1
            return
        item.given |= COUNTED
        if item.new:
            self.counts.new += 1
        else:
            self.counts.changed += 1
