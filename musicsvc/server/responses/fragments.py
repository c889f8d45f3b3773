"""The JSON of single rows, such as albums, kept ready for the pages that contain them.

A page whose rows are all ready needs nothing but the ids of its rows from the database. Each fragment is valid until
one of the tables that it was read from changes, like a cached response; a page notes the sources of its fragments, so
that the cached response is valid no longer than they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from cachetools import LRUCache

from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.shapes.envelope import compact
from musicsvc.store.engine.tables import recorded

Key = tuple["Hashable", int]  # the function that makes the JSON of rows of this kind, and the id of the row
LARGE = 1024 * 1024  # bytes; larger responses, and rows that are larger together, are not cached
LARGEST = 8 * LARGE  # bytes of one that is made for an account
OVERHEAD = 448  # bytes of an entry beside its JSON, about


class Fragment(NamedTuple):
    """The JSON of a row."""

    content: bytes
    source: Source

    @property
    def size(self) -> int:
        """The bytes of memory that the fragment takes."""
        return OVERHEAD + len(self.content)


class Fragments:
    """The most recently used fragments of a process. Safe to use from any thread."""

    def __init__(self, capacity: int, freshness: Freshness) -> None:
        """`capacity`: the maximum size of all fragments in bytes."""
        self._freshness = freshness
        self._fragments: LRUCache[Key, Fragment] = LRUCache(capacity, getsizeof=attrgetter("size"))
        self._lock = threading.Lock()

    @property
    def size(self) -> float:
        """The bytes of all fragments."""
        return self._fragments.currsize

    def at(self, stamp: Stamp) -> FragmentReader:
        """Return a reader for a request. `stamp`: a moment before the request reads from the database."""
        return FragmentReader(self, stamp)

    def find(self, kind: Hashable, ids: Iterable[int], *, counted: bool = True) -> dict[int, Fragment]:
        """Map ids to fragments, for the rows whose fragments are ready and valid.

        `counted`: whether changes of counters, such as plays, make them invalid too.
        """
        found: dict[int, Fragment] = {}
        source, valid = None, False
        with self._lock:
            for row_id in ids:
                key = kind, row_id
                fragment = self._fragments.get(key)
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
                self._fragments.pop((kind, row_id), None)
                if fragment.size <= self._fragments.maxsize:
                    self._fragments[kind, row_id] = fragment


class FragmentReader:
    """Finds or creates the fragments for one request. `sources`: when and from which tables the fragments were read."""

    def __init__(self, fragments: Fragments, stamp: Stamp) -> None:
        self._fragments = fragments
        self._stamp = stamp
        self.sources: set[Source] = set()

    def read(self, kind: Hashable, ids: Sequence[int], make: Callable[[Sequence[int]], Iterable[bytes]]) -> list[bytes]:
        """Return the JSON of the rows with these ids. Call `make` with the ids of rows that have no valid fragment.

        Rows that take more than LARGE bytes together are not kept, because they would displace many others.
        """
        found = self._fragments.find(kind, ids)
        missing = [row_id for row_id in ids if row_id not in found]
        if missing:
            made, tables = recorded(lambda: make(missing))
            source = Source(self._stamp, tables)
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
            found = {row_id: Fragment(content, Source(self._stamp, tables))}
            if len(content) <= LARGEST:
                self._fragments.add(kind, found)
        return found[row_id].content
