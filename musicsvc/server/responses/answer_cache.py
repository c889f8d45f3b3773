"""A cache of the responses to reads. They are valid until any process commits a change to the database."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from musicsvc.server.responses.large import LARGE, Encoded
from musicsvc.server.shapes.representation import JSON_TYPE, Representation, compressible, tag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Key = tuple[str, "Hashable"]  # the path and query of a request, and its audience
OVERHEAD = 1024  # bytes of an entry beside its bodies, about


class Slot:
    """The place in the cache for the response to one request."""

    def __init__(self, cache: AnswerCache, key: Key, version: int) -> None:
        """`version`: the version of the database before the response is read from it."""
        self._cache = cache
        self._key = key
        self._version = version

    def fill(self, body: object) -> object:
        """Cache the body of a response if it is short JSON. Return it, with its entity tag if it is cached."""
        if not isinstance(body, Encoded) or body.size > LARGE:
            return body
        content = b"".join(body.pieces)
        answer = Representation(content, JSON_TYPE, tag_of([content]), compressible(len(content), JSON_TYPE))
        self._cache.add(self._key, self._version, answer)
        return answer


class AnswerCache:
    """The most recently used responses of a process. Use it on the event loop only."""

    def __init__(self, capacity: int, version: Callable[[], int | None]) -> None:
        """`capacity`: in bytes; `version`: returns a number that changes with each commit, or None if unknown."""
        self._capacity = capacity
        self._current = version
        self._version: int | None = None
        self._answers: OrderedDict[Key, Representation] = OrderedDict()
        self.size = self.hits = self.misses = 0

    def find(self, target: str, audience: Hashable = None) -> Representation | Slot | None:
        """Return the response for this path and query, or a slot for it, or None if the cache is off.

        `audience`: a value that is equal for callers who get equal responses.
        """
        if not self._capacity or (version := self._current()) is None:
            return None
        if version != self._version:
            self._clear(version)
        key = target, audience
        answer = self._answers.get(key)
        if answer is None:
            self.misses += 1
            return Slot(self, key, version)
        self.hits += 1
        self._answers.move_to_end(key)
        return answer

    def add(self, key: Key, version: int, answer: Representation) -> None:
        """Add a response that was read from the database at this version or later."""
        if version != self._version:
            return
        self._drop(key)
        self._answers[key] = answer
        self.size += _size(key, answer)
        while self.size > self._capacity:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Key) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.size -= _size(key, answer)

    def _clear(self, version: int) -> None:
        self._answers.clear()
        self.size = 0
        self._version = version


def _size(key: Key, answer: Representation) -> int:
    """Return the bytes of memory that a response takes at most: its gzip form is not larger than its body."""
    return OVERHEAD + len(key[0]) + (2 if answer.compressible else 1) * len(answer.content)
