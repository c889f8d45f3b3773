"""A cache of the responses to reads. Each is valid until any process changes a table that it was read from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import NamedTuple, TypeVar

from cachetools import LRUCache

from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.responses.fragments import LARGE, FragmentReader, Fragments
from musicsvc.server.responses.large import Encoded
from musicsvc.server.shapes.envelope import JSON_TYPE, Representation, compact, compressible, tag_of
from musicsvc.store.engine.tables import recorded

T = TypeVar("T")
Key = tuple[str, "Hashable"]  # the path and query of a request, and its audience
OVERHEAD = 1280  # bytes of an entry beside its bodies, about


class Entry(NamedTuple):
    answer: Representation
    source: Source
    size: int  # bytes of memory that the response takes at most: its gzip form is not larger than its body


class Slot:
    """The place in the cache for the response to one request."""

    def __init__(self, cache: AnswerCache, key: Key, stamp: Stamp) -> None:
        """`stamp`: a moment before the response is read from the database."""
        self._cache = cache
        self._key = key
        self.stamp = stamp
        self._tables: frozenset[str] | None = None

    def recording(self, unit: Callable[[], T]) -> Callable[[], T]:
        """Return a unit of work that calls `unit` and remembers the tables that `unit` read."""

        def read() -> T:
            result, self._tables = recorded(unit)
            return result

        return read

    def fill(self, body: object, parts: Iterable[Source] = ()) -> object:
        """Return the body of a response. If it is short JSON, cache it and return it with its entity tag.

        `parts`: when and from which tables those parts of the body were read that earlier requests have encoded.
        """
        if not isinstance(body, Encoded) or body.size > LARGE or self._tables is None:
            return body
        answer = represent_json(body)
        stamp = min([self.stamp, *(part.stamp for part in parts)])
        tables = self._tables.union(*(part.tables for part in parts))
        size = OVERHEAD + len(self._key[0]) + (2 if answer.compressible else 1) * len(answer.content)
        self._cache.add(self._key, Entry(answer, Source(stamp, tables), size))
        return answer


def represent_json(body: Encoded) -> Representation:
    """Return a JSON body with its entity tag. The gzip form is made when a client asks for it for the first time."""
    content = compact(body.pieces)
    return Representation(content, JSON_TYPE, tag_of([content]), compressible(len(content), JSON_TYPE))


class AnswerCache:
    """The most recently used responses of a process. Use it on the event loop only."""

    def __init__(self, capacity: int, freshness: Freshness) -> None:
        """`capacity`: the maximum size in bytes of responses and fragments together; each get half of it."""
        self._freshness = freshness
        self.fragments = Fragments(capacity // 2, freshness)
        self._entries: LRUCache[Key, Entry] = LRUCache(capacity // 2, getsizeof=attrgetter("size"))
        self.hits = self.misses = 0

    @property
    def size(self) -> float:
        """The bytes of the responses."""
        return self._entries.currsize

    def find(self, target: str, audience: Hashable = None) -> Representation | Slot | None:
        """Return the cached response for this path and query, or a slot to store it, or None if nothing may be cached.

        `audience`: a value that is equal for callers who get equal responses.
        """
        stamp = self._freshness.now() if self._entries.maxsize else None
        if stamp is None:
            return None
        key = target, audience
        if key in self._entries:  # an exception for each miss would cost more
            entry = self._entries[key]
            if self._freshness.holds(entry.source):
                self.hits += 1
                return entry.answer
            del self._entries[key]
        self.misses += 1
        return Slot(self, key, stamp)

    def reader(self) -> FragmentReader | None:
        """Return a reader of fragments for a request that begins now, or None if nothing may be cached."""
        stamp = self._freshness.now() if self._entries.maxsize else None
        return None if stamp is None else self.fragments.at(stamp)

    def clear(self) -> None:
        """Forget all responses and fragments."""
        self._entries.clear()
        self.fragments.clear()

    def add(self, key: Key, entry: Entry) -> None:
        self._entries.pop(key, None)
        if entry.size <= self._entries.maxsize:
            self._entries[key] = entry
