"""The albums and tracks that the rows of a batch name: what the rows change, and how they are found by key."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.catalog import merged
from musicsvc.store.catalog.merged import Former
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.runner import RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.importing.undoing.runs import ADDED, Changes
from musicsvc.store.models import Artist

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


class Offered(NamedTuple):
    """The values of a row for its album or track, and the artists or genres that it adds."""

    item: "Item"
    fields: Offer
    fresh: Mapping[Any, Any]
    former: bool = False  # the row names what was merged into the item


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
    """The albums or the tracks of a batch by id, by external id, ISRC or UPC, and by name if rows name some.

    `fields`: the columns of the table that rows fill. `owner`: the column of the table of credits with its ids.
    """

    noun: str
    table: Any
    owner: Any
    fields: Sequence[str]

    def __init__(self, given: Mapping[int, int], scope: Scope, *, by_name: bool) -> None:
        """Create an empty index. `given`: by id, the fields that earlier batches of the import have set."""
        self.items: dict[int, Item] = {}
        self.counts = Counts()
        self._given = given
        self._scope, self._manager = scope, scope.user or 0
        self._is_by_name = by_name
        self._by_code: dict[Key, Item] = {}
        self._by_name: dict[Key, list[Item]] = {}
        self._former: dict[Key, Item] = {}
        self._of_others: set[str] = set()  # external ids of what was imported for the manager, who lost it since
        self._numbered: set[int] = set()  # what rows find by external id; those of other managers' imports can be alike
        self._own: set[int] = set()  # what the manager has, so that rows may change it

    def find_own(
        self, kind: int, external_ids: Collection[str], names: Collection[str], named: Iterable[Sequence[Any]]
    ) -> tuple[list[Sequence[Any]], list[Former]]:
        """Return what the manager of the import manages: rows of id, external id and fields, and what was merged.

        `kind`: of what was merged. `named`: rows of what the file names otherwise, by these names among others.
        """
        imported = _by_external_id(external_ids, self._manager, of=type(self)) if external_ids else []
        formers = merged.find(kind, name=names, external_id=external_ids)
        stored = [*imported, *named]
        ids = {row[0] for row in stored} | {former.into for former in formers}
        self._own = {row[0] for row in _managed(ids, self._manager, owner=self.owner)} if ids else set()
        self._numbered = {row[0] for row in imported}
        self._of_others = {row[1] for row in imported if row[0] not in self._own}
        return [row for row in stored if row[0] in self._own], [each for each in formers if each.into in self._own]

    def by_id(self, ids: Collection[int]) -> list[Any]:
        """Return rows of id, external id and fields."""
        return _by_id(ids, of=type(self)) if ids else []

    def credits_of(self, ids: Collection[int]) -> list[Any]:
        """Return ids of these albums or tracks with those of their artists, in order."""
        return _credits(ids, owner=self.owner) if ids else []

    def add_former_id(self, former: Former) -> Item:
        """Add the external id of what was merged into an item, if it was imported for the manager. Return the item."""
        item = self.items[former.into]
        if former.external_id is not None and former.imported_for == self._manager:
            self.add_former(("id", former.external_id), item)
        return item

    def altered(self) -> tuple[list[Item], list[Item]]:
        """Return the new items, and the others that rows have changed."""
        found = [item for item in self.items.values() if item.altered]
        return [item for item in found if item.new], [item for item in found if not item.new]

    def insert(self, new: Sequence[Item]) -> None:
        """Insert new items, and record that the import made them."""
        columns, values = ("id", "external_id", "imported_for", "created_at", *self.fields), itemgetter(*self.fields)
        common = self._manager, self._scope.now
        rows = [(item.id, item.external_id, *common, *values(item.values)) for item in new]
        bulk.insert(self.table, columns, rows)
        runs.made(self._scope.run, self.table, [item.id for item in new])

    def update(self, items: Iterable[Item]) -> None:
        """Write the changed fields of items, but not their artists."""
        for item in items:
            if changes := {name: item.values[name] for name in item.before if name != "artists"}:
                self.table.update(**changes).where(self.table.id == item.id).execute()

    def require_own(self, external_id: str | None) -> None:
        """Raise RefusedError if another account manages what has this external id, or nobody does."""
        if external_id in self._of_others:
            raise RefusedError(ANOTHERS.format(self.noun), f"{self.noun}s", (external_id or "",))

    def find(self, key: Key, name: str | None = None) -> Item | None:
        """Return the item with this key, of several the first one written as `name` or else the first one, or None."""
        if key[0] != "name":
            coded = self._by_code.get(key)
            return coded if coded is None or key[0] == "id" or self.code(coded) == key[1] else None
        found = [item for item in self._by_name.get(key, ()) if item.name_key == key]
        return next((item for item in found if item.values["name"] == name), found[0] if found else None)

    def find_former(self, key: Key) -> Item | None:
        """Return the item into which the one with this key was merged. Rows with the key change nothing of it."""
        return self._former.get(key)

    def add_former(self, key: Key, item: Item) -> None:
        """Add the key of what was merged into an item."""
        self._former.setdefault(key, item)

    def load(self, rows: Iterable[Sequence[Any]]) -> list[Item]:
        """Add stored items, given as rows of id, external id and fields. Return them in the order of preference.

        For a row of a file without an external id, items without one come first, then the oldest.
        """
        loaded = []
        for item_id, external_id, *values in sorted(rows, key=lambda row: (row[1] is not None, row[0])):
            if item_id not in self.items:
                item = Item(item_id, dict(zip(self.fields, values, strict=True)), external_id)
                item.given = self._given.get(item_id, 0)
                self.items[item_id] = item
                loaded.append(item)
        return loaded

    @abstractmethod
    def name_key(self, item: Item) -> Key:
        """Return what identifies the item in rows without an external id."""

    @abstractmethod
    def code(self, item: Item) -> str | None:
        """Return the ISRC or UPC of the item."""

    def put(self, item: Item, code: Key = ("upc", None)) -> None:
        """Add a new item, or one whose values have changed, under its keys. `code`: with its ISRC or UPC, or None."""
        self.items[item.id] = item
        if item.external_id is not None and (item.new or item.id in self._numbered):
            self._by_code.setdefault(("id", item.external_id), item)
        if code[1] is not None and self.find(code) is None:
            self._by_code[code] = item
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


def columns(of: type[Index]) -> list[Any]:
    """Return the columns of rows of id, external id and fields."""
    return [getattr(of.table, name) for name in ("id", "external_id", *of.fields)]


@compiled
def _by_id(ids: Collection[int], *, of: type[Index]) -> Any:
    return of.table.select(*columns(of)).where(of.table.id.in_(ids))


@compiled
def _by_external_id(external_ids: Collection[str], manager: int, *, of: type[Index]) -> Any:
    query = of.table.select(*columns(of))
    return query.where(of.table.external_id.in_(external_ids), of.table.imported_for == manager)


@compiled
def _managed(ids: Collection[int], manager: int, *, owner: Any) -> Any:
    query = owner.model.select(owner).join(Artist)
    return query.where(owner.in_(ids), fn.coalesce(Artist.manager, 0) == manager)


@compiled
def _credits(ids: Collection[int], *, owner: Any) -> Any:
    return owner.model.select(owner, owner.model.artist).where(owner.in_(ids)).order_by(owner, owner.model.position)
