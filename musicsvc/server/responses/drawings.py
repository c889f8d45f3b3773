"""A cache of drawn pictures and pages with bounded memory, shared by the threads of a process."""

import threading
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import NamedTuple

from musicsvc.server.recent import Recent
from musicsvc.server.shapes.envelope import Representation, represent

CAPACITY = 32 * 1024 * 1024  # bytes
PNG = "image/png"


class Drawing(NamedTuple):
    drawn: Representation
    at: int  # when it was drawn, in microseconds since 1970

    @property
    def size(self) -> int:
        return len(self.drawn.content) + len(self.drawn.packed or b"")


class Drawings:
    """A cache of the most recently used drawings. Those drawn with `constant` set are never dropped."""

    def __init__(self, capacity: int = CAPACITY, content_type: str = PNG, lifetime: int | None = None) -> None:
        """`capacity`: the maximum size of the cache in bytes, not counting drawings drawn with `constant` set.

        `content_type`: of drawings that are drawn without another one.

        `lifetime`: microseconds after which drawings are drawn again; None: never.
        """
        self._type = content_type
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._constant: dict[Hashable, Representation] = {}
        self._recent: Recent[Hashable, Drawing] = Recent(capacity, attrgetter("size"))

    @property
    def size(self) -> float:
        """The bytes of the drawings that may be dropped."""
        return self._recent.size

    def get(self, key: Hashable, now: int = 0) -> Representation | None:
        with self._lock:
            kept = self._recent.recall(key)
            if kept is None or not (self._lifetime is None or 0 <= now - kept.at < self._lifetime):
                return self._constant.get(key)
            return kept.drawn

    def clear(self) -> None:
        """Forget all drawings that may be dropped."""
        with self._lock:
            self._recent.clear()

    def draw(
        self, key: Hashable, draw: Callable[[], bytes], now: int = 0, *, constant: bool = False, content_type: str = ""
    ) -> Representation:
        kept = self.get(key, now)
        if kept is not None:
            return kept
        drawn = represent(draw(), content_type or self._type)
        with self._lock:
            if constant:
                self._constant[key] = drawn
            else:
                self._recent.keep(key, Drawing(drawn, now))
        return drawn
