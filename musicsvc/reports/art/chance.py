"""Generate random numbers that are the same for the same seed words, on every machine and Python version."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Chance:
    """A random number generator, seeded with words. It uses SHA-256, because generators of libraries may change."""

    def __init__(self, *words: str) -> None:
        self._seed = hashlib.sha256(
            "".join(f"{len(word)}:{word}" for word in words).encode("utf-8", "replace")
        ).digest()
        self._numbers = self._stream()

    def _stream(self) -> Iterator[float]:
        counter = 0
        while True:
            block = hashlib.sha256(self._seed + counter.to_bytes(8)).digest()
            yield from (int.from_bytes(block[place : place + 4]) / 2**32 for place in range(0, 32, 4))
            counter += 1

    def unit(self) -> float:
        return next(self._numbers)

    def between(self, low: float, high: float) -> float:
        """Return a random number from `low` to `high`."""
        return low + (high - low) * self.unit()

    def below(self, count: int) -> int:
        """Return a random integer from 0 to `count` - 1."""
        return int(self.unit() * count)

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in items]
