"""A cache of the responses to reads, and of the JSON of single rows, such as albums, for the pages that contain them.

Each is valid until any process changes a table that it was read from. A page whose rows are all ready needs nothing but
the ids of its rows from the database. It notes the sources of these fragments, so that the cached response is valid no
longer than they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.recent import Recent
from musicsvc.server.shapes.envelope import JSON_TYPE, Encoded, Representation, compact, compressible, tag_of
from musicsvc.store.engine.tables import recorded

T = TypeVar("T")
Key = tuple[str, "Hashable"]  # the path and query of a request, and its audience
RowKey = tuple["Hashable", int]  # the function that makes the JSON of rows of this kind, and the id of the row
LARGE = 1024 * 1024  # bytes; larger responses, and rows that are larger together, are not cached
LARGEST = 8 * LARGE  # bytes of a row that is made for an account
OVERHEAD = 1280  # bytes of an entry beside its bodies, about
ROW_OVERHEAD = 448  # bytes of a fragment beside its JSON, about


class Entry(NamedTuple):
    answer: Representation
    source: Source
    size: int  # bytes of memory that the response takes at most: its gzip form is not larger than its body


class Slot:
    """The place in the cache for the response to one request."""

    def __init__(self, entries: Recent[Key, Entry], key: Key, fragments: FragmentReader) -> None:
        """`fragments`: finds or creates those of the response."""
        self._entries = entries
        self._key = key
        self.fragments = fragments
        self._tables: frozenset[str] | None = None

    def read(self, unit: Callable[[], T]) -> T:
        """Call a unit of work, and remember the tables that it read."""
        result, self._tables = recorded(unit)
        return result

    def fill(self, body: object) -> object:
        """Return the body of a response. If it is short JSON, cache it and return it with its entity tag."""
        if not isinstance(body, Encoded) or body.size > LARGE or self._tables is None:
            return body
        answer, parts = represent_json(body), self.fragments.sources
        stamp = min([self.fragments.stamp, *(part.stamp for part in parts)])
        tables = self._tables.union(*(part.tables for part in parts))
        size = OVERHEAD + len(self._key[0]) + len(answer.link) + (2 if answer.compressible else 1) * len(answer.content)
        self._entries.keep(self._key, Entry(answer, Source(stamp, tables), size))
        return answer


def represent_json(body: Encoded) -> Representation:
    """Return a JSON body with its entity tag. The gzip form is made when a client asks for it for the first time."""
    content = compact(body.pieces)
    can_pack = compressible(len(content), JSON_TYPE)
    return Representation(content, JSON_TYPE, tag_of([content]), can_pack, link=body.link)


class AnswerCache:
    """The most recently used responses of a process. Use it on the event loop only."""

    def __init__(self, capacity: int, freshness: Freshness) -> None:
        """`capacity`: the maximum size in bytes of responses and fragments together; each get half of it."""
        self._freshness = freshness
        self.fragments = Fragments(capacity // 2, freshness)
        self._entries: Recent[Key, Entry] = Recent(capacity // 2, attrgetter("size"))
        self.hits = self.misses = 0

    @property
    def size(self) -> float:
        """The bytes of the responses."""
        return self._entries.size

    def find(self, target: str, audience: Hashable = None) -> Representation | Slot | None:
        """Return the cached response for this path and query, or a slot to store it, or None if nothing may be cached.

        `audience`: a value that is equal for callers who get equal responses.
        """
        stamp = self._freshness.now() if self._entries.capacity else None
        if stamp is None:
            return None
        key = target, audience
        if (entry := self._entries.recall(key)) is not None:
            if self._freshness.holds(entry.source):
                self.hits += 1
                return entry.answer
            self._entries.forget(key)
        self.misses += 1
        return Slot(self._entries, key, FragmentReader(self.fragments, stamp))

    def reader(self) -> FragmentReader | None:
        """Return a reader of fragments for a request that begins now, or None if nothing may be cached."""
        stamp = self._freshness.now() if self._entries.capacity else None
        return None if stamp is None else FragmentReader(self.fragments, stamp)

    def clear(self) -> None:
        """Forget all responses and fragments."""
        self._entries.clear()
        self.fragments.clear()


class Fragment(NamedTuple):
    """The JSON of a row."""

    content: bytes
    source: Source

    @property
    def size(self) -> int:
        """The bytes of memory that the fragment takes."""
        return ROW_OVERHEAD + len(self.content)


class Fragments:
    """The most recently used fragments of a process. Safe to use from any thread."""

    def __init__(self, capacity: int, freshness: Freshness) -> None:
        """`capacity`: the maximum size of all fragments in bytes."""
        self._freshness = freshness
        self._fragments: Recent[RowKey, Fragment] = Recent(capacity, attrgetter("size"))
        self._lock = threading.Lock()

    @property
    def size(self) -> float:
        """The bytes of all fragments."""
        return self._fragments.size

    def find(self, kind: Hashable, ids: Iterable[int], *, counted: bool = True) -> dict[int, Fragment]:
        """Map ids to fragments, for the rows whose fragments are ready and valid.

        `counted`: whether changes of counters, such as plays, make them invalid too.
        """
        found: dict[int, Fragment] = {}
        source, valid = None, False
        with self._lock:
            for row_id in ids:
                key = kind, row_id
                fragment = self._fragments.recall(key)
                if fragment is None:
                    continue
                if fragment.source is not source:  # neighbours often have the same
                    source = fragment.source
                    valid = self._freshness.holds(source, counted=counted)
                if valid:
                    found[row_id] = fragment
        return found

    def clear(self) -> None:
        with self._lock:
            self._fragments.clear()

    def add(self, kind: Hashable, fragments: Mapping[int, Fragment]) -> None:
        with self._lock:
            for row_id, fragment in fragments.items():
                self._fragments.keep((kind, row_id), fragment)


class FragmentReader:
    """Finds or creates the fragments for one request. `sources`: when and from which tables the fragments were read."""

    def __init__(self, fragments: Fragments, stamp: Stamp) -> None:
        """`stamp`: a moment before the request reads from the database."""
        self._fragments = fragments
        self.stamp = stamp
        self.sources: set[Source] = set()

    def read(self, kind: Hashable, ids: Sequence[int], make: Callable[[Sequence[int]], Iterable[bytes]]) -> list[bytes]:
        """Return the JSON of the rows with these ids. Call `make` with the ids of rows that have no valid fragment.

        Rows that take more than LARGE bytes together are not kept, because they would displace many others.
        """
        found = self._fragments.find(kind, ids)
        missing = [row_id for row_id in ids if row_id not in found]
        if missing:
            made, tables = recorded(lambda: make(missing))
            source = Source(self.stamp, tables)
            contents = map(compact, zip(made, strict=True))
            new = {row_id: Fragment(content, source) for row_id, content in zip(missing, contents, strict=True)}
            if sum(len(fragment.content) for fragment in new.values()) <= LARGE:
                self._fragments.add(kind, new)
            found |= new
        self.sources.update(fragment.source for fragment in found.values())
        return [found[row_id].content for row_id in ids]

    def read_one(self, kind: Hashable, row_id: int, make: Callable[[], bytes]) -> bytes:
        """Return what was made from the database for the row, of any notation, or make it. No counters are in it."""
        found = self._fragments.find(kind, [row_id], counted=False)
        if row_id not in found:
            content, tables = recorded(make)
            found = {row_id: Fragment(content, Source(self.stamp, tables))}
            if len(content) <= LARGEST:
                self._fragments.add(kind, found)
        return found[row_id].content
