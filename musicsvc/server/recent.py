"""A mapping with bounded memory, which forgets what was used least recently."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """The most recently used values, the least recently used first. Looking one up by `recall` is using it."""

    def __init__(self, capacity: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        """`capacity`: the most that the values, each of the size `size_of`, have together."""
        super().__init__()
        self.capacity = capacity
        self.size = 0
        self._size_of = size_of

    def recall(self, key: K) -> V | None:
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: K, value: V) -> None:
        """Keep the value in place of an older one, if it is not larger than all may be."""
        self.forget(key)
        if (size := self._size_of(value)) <= self.capacity:
            self[key] = value
            self.size += size
            while self.size > self.capacity:
                self.forget(next(iter(self)))

    def forget(self, key: K) -> None:
        if (value := self.pop(key, None)) is not None:
            self.size -= self._size_of(value)

    def clear(self) -> None:
        super().clear()
        self.size = 0
