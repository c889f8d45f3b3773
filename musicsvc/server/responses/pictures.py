"""Drawn pictures kept in bounded memory, for the store threads and the drawing threads of one process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from musicsvc.server.responses.representation import Representation, represent

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CAPACITY = 32 * 1024 * 1024  # bytes
PNG = "image/png"


class Pictures:
    """Keeps the pictures that were used last; constant ones, of which there are few, are never dropped."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """`capacity`: bytes of the pictures that can be dropped."""
        self._capacity = capacity
        self._size = 0
        self._lock = threading.Lock()
        self._constant: dict[Hashable, Representation] = {}
        self._recent: OrderedDict[Hashable, Representation] = OrderedDict()

    def get(self, key: Hashable) -> Representation | None:
        """Return the picture, None where it is not kept."""
        with self._lock:
            if key in self._recent:
                self._recent.move_to_end(key)
                return self._recent[key]
            return self._constant.get(key)

    def draw(self, key: Hashable, draw: Callable[[], bytes], *, constant: bool = False) -> Representation:
        """Return the picture, drawn and kept unless another thread was first."""
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
