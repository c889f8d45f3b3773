"""Counting requests in the table `quota` of a database that processes share.

A transaction locks the rows of its keys in order, counts by the rule of `window`, and writes the rows that change.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from musicsvc.store.rate_limits.window import SECOND, Count, Hit, HitCounter, Status, give_back, take

T = TypeVar("T")
COLUMNS = "key, began, requests, previous, ends"  # the start and numbers of a `Count`, and when it cannot matter
# The last parameter is whether the key was there when it was locked. Returns no row if that has changed.
SAVE = f"""
    INSERT INTO quota ({COLUMNS}) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET
        began = excluded.began, requests = excluded.requests, previous = excluded.previous, ends = excluded.ends
    WHERE ? RETURNING key
"""  # noqa: S608 - composed of constants
PURGED = 20_000  # expired counts that are deleted at once, so that counting never waits long
SELECT_OVER = f"SELECT key, ends FROM quota WHERE ends <= ? OR began > ? LIMIT {PURGED}"  # noqa: S608 - a constant
SELECT_OLDEST = "SELECT key, ends FROM quota ORDER BY ends LIMIT ?"
NUMBER = "SELECT count(*) FROM quota"


class SharedHitCounter(HitCounter):
    """Counts the requests to several processes. It opens itself when it is used, and again after a fault.

    Methods may block, so call them on a thread, one at a time. They raise Unavailable if counting is impossible.
    """

    spans_machines: ClassVar[bool]  # so a process does not know how many others count

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        return self.count_all([hits])[0]

    def uncount(self, hits: Sequence[Hit]) -> None:
        self.count_all([], [(hit, 1, None) for hit in hits])

    def count_all(
        self, requests: Sequence[Sequence[Hit]], unused: Sequence[tuple[Hit, int, int | None]] = ()
    ) -> list[list[Status]]:
        """Count requests one after the other, after undoing the counting of `unused` ones. Return the statuses of each.

        `unused`: with their numbers and the starts of the windows in which they were counted, or None for any.
        """
        keys = sorted({hit.key for hits in requests for hit in hits} | {hit.key for hit, _, _ in unused})

        def unit() -> list[list[Status]]:
            now, stored = self._locked(keys)
            counts = dict(stored)
            for given in unused:
                give_back(counts, *given)
            statuses = [take(counts, hits, now) for hits in requests]
            for key in keys:
                if key in counts and counts[key] != stored.get(key):
                    count, ends = counts[key]
                    self._save(key, *count, ends, key in stored)
            return statuses

        return self._transact(unit)

    def _purge(self, now: int, most: int) -> None:
        """Delete expired counts, and the oldest beyond `most`. They are read without a lock."""
        self._delete(self._read(SELECT_OVER, now, now + 60 * SECOND))
        ((number,),) = self._read(NUMBER)
        if number > most:
            self._delete(self._read(SELECT_OLDEST, number - most))

    @abstractmethod
    def _transact(self, unit: Callable[[], T]) -> T:
        """Run `unit` in a transaction that writes."""

    @abstractmethod
    def _locked(self, keys: Sequence[str]) -> tuple[int, Mapping[str, tuple[Count, int]]]:
        """Lock the rows of `keys`, which are sorted. Return the time (ms), and those that are stored."""

    @abstractmethod
    def _save(self, *row: int | str) -> None:
        """Run `SAVE` with these values."""

    @abstractmethod
    def _read(self, query: str, *values: int) -> list[Any]:
        """Return the rows of a query, which is no part of a transaction."""

    @abstractmethod
    def _delete(self, rows: Sequence[tuple[str, int]]) -> None:
        """Delete the rows of these keys that still end at these times."""

    @abstractmethod
    def check(self) -> None:
        """Open the counter if that has not been done, or if its file was moved or replaced."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


def counts_of(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Count, int]]:
    """Return the counts in rows of `COLUMNS`."""
    return {key: (Count(*numbers), ends) for key, *numbers, ends in rows}
