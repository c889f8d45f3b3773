"""The sliding-window rule of rate limits, and counting by it in the memory of a process. Times are in milliseconds.

A limit allows `amount` requests in any window of time. Only the numbers of requests in the current and the previous
window are stored. Requests of the previous window are assumed to be evenly spaced, and expire one by one during the
current window. Rejected requests are not counted.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

SECOND = 1000
AHEAD = 5 * SECOND  # a window that begins further in the future was stored before the clock was reset
# Added to the elapsed time: the first request of a window expires when the next window begins, although times are
# rounded. A client that keeps exactly to the rate is never rejected.
GRACE = 2
MAX_KEYS = 50_000
new_tuple = tuple.__new__  # makes a named one in two thirds of the time


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: at most `amount` requests in `window` milliseconds."""

    name: str
    amount: int
    window: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A request to count against one limit. `subject` identifies the token or the network address that sent it."""

    limit: Limit
    subject: str
    key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.limit.name}:{self.subject}")


class Count(NamedTuple):
    """The number of requests in the current window of time, which began at `began`, and in the previous window."""

    began: int
    current: int
    previous: int


class Status(NamedTuple):
    """The status of a rate limit after a request. `remaining` more requests are allowed at this moment.

    `wait` is the time in milliseconds until the window ends or, if `remaining` is 0, until another request is allowed.
    The window `began` then on the counter's clock.
    """

    limit: Limit
    allowed: bool
    remaining: int
    wait: int
    began: int


Counts: TypeAlias = MutableMapping[str, tuple[Count, int]]  # by key, each with the time from which it cannot matter


class HitCounter(ABC):
    """Counts requests against rate limits."""

    @abstractmethod
    def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request against all limits of `hits`, or none if one rejects it. Return one status per limit."""

    @abstractmethod
    def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""

    @abstractmethod
    def purge(self) -> None:
        """Delete expired counts, and the oldest counts if too many are stored."""


class MemoryHitCounter(HitCounter):
    """Counts the requests to one process. Drops the least recently used count if there are more than `max_keys`."""

    def __init__(self, clock: Callable[[], int], max_keys: int = MAX_KEYS) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, tuple[Count, int]] = OrderedDict()
        self._max_keys = max_keys

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        now = self._clock()
        if len(hits) == 1 and (plain := _take_plain(self._counts, hits[0], now)) is not None:
            self._counts.move_to_end(hits[0].key)
            return [plain]
        statuses = take(self._counts, hits, now)
        if all(status.allowed for status in statuses):
            for hit in hits:
                self._counts.move_to_end(hit.key)
            while len(self._counts) > self._max_keys:
                self._counts.popitem(last=False)
        return statuses

    def uncount(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            give_back(self._counts, hit)

    def purge(self) -> None:
        now = self._clock()
        self._counts = OrderedDict((key, stored) for key, stored in self._counts.items() if stored[1] > now)


def take(counts: Counts, hits: Sequence[Hit], now: int) -> list[Status]:
    """Count a request in `counts` against all limits of `hits`, or none if one rejects it."""
    if len(hits) == 1 and (plain := _take_plain(counts, hits[0], now)) is not None:
        return [plain]
    new = Count(now, 0, 0), 0
    found = [(limit := hit.limit, key := hit.key, advance(limit, counts.get(key, new)[0], now)) for hit in hits]
    allowed = [is_allowed(limit, count, now) for limit, _, count in found]
    if all(allowed):
        found = [(limit, key, Count(began, current + 1, previous)) for limit, key, (began, current, previous) in found]
        for limit, key, count in found:
            counts[key] = count, count.began + 2 * limit.window
    return [
        status(limit, count, now, allowed=accepted) for (limit, _, count), accepted in zip(found, allowed, strict=True)
    ]


def _take_plain(counts: Counts, hit: Hit, now: int) -> Status | None:
    """Count the commonest request in a third of the time: in a current window, no request before it, room left."""
    limit, key = hit.limit, hit.key
    stored = counts.get(key)
    if stored is None:
        return None
    (began, current, previous), ends = stored
    left, wait = limit.amount - current - 1, began + limit.window - now
    if previous or left < 1 or not 0 < wait <= limit.window:
        return None
    counts[key] = new_tuple(Count, (began, current + 1, 0)), ends
    return new_tuple(Status, (limit, True, left, wait, began))


def give_back(counts: Counts, hit: Hit, number: int = 1, began: int | None = None) -> None:
    """Undo the counting of `number` requests in `counts`, if the window that `began` then is the current one."""
    if (stored := counts.get(hit.key)) is not None and began in {None, stored[0].began}:
        count, ends = stored
        counts[hit.key] = count._replace(current=max(0, count.current - number)), ends


def advance(limit: Limit, count: Count, now: int) -> Count:
    """Return `count` or, if its window has ended, the count for the window of time that contains `now`."""
    if count.began > now + AHEAD or now >= count.began + 2 * limit.window:
        return Count(now, 0, 0)
    if now >= count.began + limit.window:
        return Count(count.began + limit.window, 0, count.current)
    return count


def is_allowed(limit: Limit, count: Count, now: int) -> bool:
    """Return whether the limit allows one more request. `count` must be the result of `advance` for `now`."""
    return _unexpired(limit, count, now) + count.current < limit.amount


def status(limit: Limit, count: Count, now: int, *, allowed: bool) -> Status:
    """Return the status after an allowed or rejected request. `count` must be the result of `advance` for `now`."""
    remaining = max(0, limit.amount - _unexpired(limit, count, now) - count.current) if allowed else 0
    wait = _until_allowed(limit, count, now) if remaining == 0 else count.began + limit.window - now
    return Status(limit, allowed, remaining, wait, count.began)


def _unexpired(limit: Limit, count: Count, now: int) -> int:
    """Return the number of requests of the previous window that still count against the limit at `now`."""
    if not count.previous:
        return 0
    elapsed = min(limit.window, max(0, now - count.began) + GRACE)
    return count.previous * (limit.window - elapsed) // limit.window


def _until_allowed(limit: Limit, count: Count, now: int) -> int:
    """Return the milliseconds from `now` until one more request is allowed."""
    if count.current < limit.amount:
        return max(0, count.began + _expiry(limit, count.previous, limit.amount - count.current) - now)
    return count.began + limit.window + _expiry(limit, count.current, limit.amount) - now


def _expiry(limit: Limit, previous: int, room: int) -> int:
    """Return the milliseconds from a window's start until fewer than `room` of the `previous` requests still count."""
    if previous < room:
        return 0
    return max(0, limit.window - GRACE - (room * limit.window - 1) // previous)
