"""Counting requests in the table `quota` of a database that processes share, some of them in advance.

A transaction locks the rows of its keys in order, counts by the rule of `window`, and writes the rows that change.
A process counts requests of a busy client in advance (a lease), and then allows them without asking again.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
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

LASTS = SECOND  # at most; not beyond the window in which its requests were counted
MOST, SHARE, SINGLE = 256, 20, 100  # requests; part of what remains; the last ones of a limit, counted one by one


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


@dataclass(slots=True)
class Lease:
    """Requests counted together for a client: `used` ones, then some in advance. Times are those of the process."""

    hit: Hit
    began: int
    ends: int
    statuses: list[Status]
    used: int = 0


class Leases:
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._leases: dict[str, Lease] = {}  # the earliest first

    def spend(self, hits: Sequence[Hit]) -> list[Status]:
        """Allow a request if it was counted in advance. Return no status if it was not."""
        lease = self._leases.get(hits[0].key) if len(hits) == 1 else None
        if lease is None or lease.used == len(lease.statuses) or (now := self._clock()) >= lease.ends:
            return []
        limit, allowed, remaining, wait, began = lease.statuses[lease.used]
        lease.used += 1
        return [Status(limit, allowed, remaining, wait - (now - lease.began), began)]

    def end(
        self, requests: Sequence[Sequence[Hit]], now: int
    ) -> tuple[list[tuple[Hit, int, int]], list[Sequence[Hit]]]:
        """End old leases, and those toward the limits of these requests. Return what to give back, and to lease now.

        What to give back is the parameter `unused` of `SharedHitCounter.count_all`.
        """
        over = [*takewhile(lambda key: now - self._leases[key].began >= LASTS, self._leases)]
        asked = {hit.key: hits for hits in requests for hit in hits}
        unused: list[tuple[Hit, int, int]] = []
        wanted: list[Sequence[Hit]] = []
        for lease in [lease for key in (*over, *asked) if (lease := self._leases.pop(key, None))]:
            left, hits = lease.statuses[lease.used :], asked.get(lease.hit.key, ())
            if left:
                unused.append((lease.hit, len(left), left[0].began))
            elif len(hits) == 1:
                wanted += [hits] * min(MOST, 2 * lease.used, (lease.statuses[-1].remaining - SINGLE) // SHARE)
        return unused, wanted

    def begin(self, counted: Sequence[tuple[Sequence[Hit], list[Status]]], requests: int, now: int) -> None:
        """Keep what was counted at the time `now`. The first `requests` are used."""
        for number, ((hit, *others), (status, *_)) in enumerate(counted):
            if status.allowed and not others:
                if (lease := self._leases.get(hit.key)) is None:
                    lease = self._leases[hit.key] = Lease(hit, now, now + min(LASTS, status.wait), [])
                lease.statuses.append(status)
                lease.used += number < requests
