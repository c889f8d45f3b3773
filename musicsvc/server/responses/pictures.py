"""A cache of drawn pictures with bounded memory, shared by the threads of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from musicsvc.server.shapes.representation import Representation, represent

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CAPACITY = 32 * 1024 * 1024  # bytes
PNG = "image/png"


class PictureCache:
    """A cache of the most recently used pictures. Pictures drawn with `constant` set are never dropped."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """`capacity`: the maximum size of the cache in bytes, not counting pictures drawn with `constant` set."""
        self._capacity = capacity
        self._size = 0
        self._lock = threading.Lock()
        self._constant: dict[Hashable, Representation] = {}
        self._recent: OrderedDict[Hashable, Representation] = OrderedDict()

    def get(self, key: Hashable) -> Representation | None:
        with self._lock:
            if key in self._recent:
                self._recent.move_to_end(key)
                return self._recent[key]
            return self._constant.get(key)

    def draw(self, key: Hashable, draw: Callable[[], bytes], *, constant: bool = False) -> Representation:
        kept = self.get(key)
        if kept is not None:
            return kept
        drawn = represent(draw(), PNG)
        with self._lock:
            if constant:
                self._constant[key] = drawn
            elif len(drawn.content) <= self._capacity:
                self._keep(key, drawn)
        return drawn

    def _keep(self, key: Hashable, drawn: Representation) -> None:
        replaced = self._recent.pop(key, None)
        self._size += len(drawn.content) - (len(replaced.content) if replaced is not None else 0)
        self._recent[key] = drawn
        while self._size > self._capacity:
            _, dropped = self._recent.popitem(last=False)
            self._size -= len(dropped.content)
