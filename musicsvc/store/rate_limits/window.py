"""The sliding-window rule of rate limits, and counting by it in the memory of a process. Times are in milliseconds.

A limit allows `amount` requests in any window of time. Only the numbers of requests in the current and the previous
window are stored. Requests of the previous window are assumed to be evenly spaced, and expire one by one during the
current window. Rejected requests are not counted.
"""

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

SECOND = 1000
PURGED = 20_000  # expired counts that are deleted at once, so that counting never waits long
AHEAD = 5 * SECOND  # a window that begins further in the future was stored before the clock was reset
# Added to the elapsed time: the first request of a window expires when the next window begins, although times are
# rounded. A client that keeps exactly to the rate is never rejected.
GRACE = 2

# The rule as an upsert into `quota (key, began, requests, previous, ends)`: `requests` counts the current window,
# `previous` the one before, `excluded.began` is now, and `excluded.requests` the number of requests to count. Rejected
# requests change nothing and return no row.
RESTART = f"(quota.began > excluded.began + {AHEAD} OR excluded.began >= quota.began + 2 * {{window}})"
NEXT = "excluded.began >= quota.began + {window}"
ELAPSED_OF_NEXT = f"{{least}}({{window}}, excluded.began - quota.began - {{window}} + {GRACE})"
ELAPSED = f"{{least}}({{window}}, {{greatest}}(0, excluded.began - quota.began) + {GRACE})"
UPSERT = f"""
    ON CONFLICT (key) DO UPDATE SET
        began = CASE WHEN {RESTART} THEN excluded.began WHEN {NEXT} THEN quota.began + {{window}} ELSE quota.began END,
        requests = CASE WHEN {RESTART} OR {NEXT} THEN excluded.requests ELSE quota.requests + excluded.requests END,
        previous = CASE WHEN {RESTART} THEN 0 WHEN {NEXT} THEN quota.requests ELSE quota.previous END,
        ends = CASE WHEN {RESTART} OR {NEXT} THEN excluded.ends ELSE quota.ends END
    WHERE excluded.requests + CASE
        WHEN {RESTART} THEN 0
        WHEN {NEXT} THEN quota.requests * ({{window}} - {ELAPSED_OF_NEXT}) / {{window}}
        ELSE quota.previous * ({{window}} - {ELAPSED}) / {{window}} + quota.requests END <= {{amount}}
    RETURNING began, requests, previous
"""
MAX_KEYS = 50_000
Counts = Sequence[tuple[str, int, int, int, int]]  # key, start of the window, current and previous number, expiry


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: at most `amount` requests in `window` milliseconds."""

    name: str
    amount: int
    window: int


class Hit(NamedTuple):
    """A request to count against one limit. `subject` identifies the token or the network address that sent it."""

    limit: Limit
    subject: str

    @property
    def key(self) -> str:
        return f"{self.limit.name}:{self.subject}"


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


Numbers: TypeAlias = Mapping[tuple[Hit, ...], int]  # of equal requests, each toward one limit or several


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
        self._send: Callable[[Counts], None] | None = None

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        now = self._clock()
        if len(hits) == 1 and (plain := self._count_plain(hits[0], now)) is not None:
            return [plain]
        found = [(limit, key, self._current(limit, key, now)) for limit, key in ((hit.limit, hit.key) for hit in hits)]
        allowed = [is_allowed(limit, count, now, 1) for limit, _, count in found]
        if all(allowed):
            found = [(limit, key, self._add(limit, key, count)) for limit, key, count in found]
        return [
            status(limit, count, now, allowed=accepted)
            for (limit, _, count), accepted in zip(found, allowed, strict=True)
        ]

    def _count_plain(self, hit: Hit, now: int) -> Status | None:
        """Count the commonest request in a third of the time: in a current window, no request before it, room left."""
        limit, key = hit.limit, hit.key
        stored = self._counts.get(key)
        if stored is None:
            return None
        began, current, previous = stored[0]
        left, end = limit.amount - current - 1, began + limit.window
        if previous or left < 1 or not began <= now < end or self._send is not None:
            return None
        self._counts[key] = Count(began, current + 1, 0), end + limit.window
        self._counts.move_to_end(key)
        return Status(limit, True, left, end - now, began)  # noqa: FBT003 - `allowed`; by name takes longer

    def _current(self, limit: Limit, key: str, now: int) -> Count:
        stored = self._counts.get(key)
        return Count(now, 0, 0) if stored is None else advance(limit, stored[0], now)

    def _add(self, limit: Limit, key: str, count: Count) -> Count:
        count = Count(count.began, count.current + 1, count.previous)
        self._counts[key] = count, count.began + 2 * limit.window
        self._counts.move_to_end(key)
        self._send_change(key, 1)
        if len(self._counts) > self._max_keys:
            self._counts.popitem(last=False)
        return count

    def uncount(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            if (stored := self._counts.get(hit.key)) is not None:
                count, ends = stored
                self._counts[hit.key] = count._replace(current=max(0, count.current - 1)), ends
                self._send_change(hit.key, -1)

    def hand_over(self, send: Callable[[Counts], None]) -> None:
        """Pass all counts to `send`, and from now on each change of them. Another process continues them."""
        send([(key, *count, ends) for key, (count, ends) in self._counts.items()])
        self._send = send

    def _send_change(self, key: str, number: int) -> None:
        if self._send is not None:
            count, ends = self._counts[key]
            self._send([(key, count.began, number, 0, ends)])

    def take_over(self, counts: Counts) -> None:
        """Add counts, or changes of them, that another process has handed over."""
        for key, began, current, previous, ends in counts:
            known, until = self._counts.get(key, (Count(began, 0, previous), ends))
            self._counts[key] = known._replace(current=max(0, known.current + current)), until

    def purge(self) -> None:
        now = self._clock()
        self._counts = OrderedDict((key, stored) for key, stored in self._counts.items() if stored[1] > now)


class SharedHitCounter(HitCounter):
    """Counts the requests to several processes. It opens itself when it is used, and again after a fault.

    Methods may block, so call them on a thread, one at a time. They raise Unavailable if counting is impossible.
    """

    spans_machines: ClassVar[bool]  # so a process does not know how many others count

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        return self._count_equal(hits, 1)[0]

    def _count_equal(self, hits: Sequence[Hit], number: int) -> list[list[Status]]:
        """Count `number` equal requests together or, if not all are allowed, one by one. Return the result of each."""
        counted = self._count_together(hits, number)
        if number > 1 and not all(allowed for _, _, allowed in counted):
            found = self._count_equal(hits, 1)
            while len(found) < number and all(each.allowed for each in found[-1]):
                found += self._count_equal(hits, 1)
            return found + [found[-1]] * (number - len(found))
        return [
            [
                status(hit.limit, count._replace(current=count.current - later), now, allowed=allowed)
                for hit, (count, now, allowed) in zip(hits, counted, strict=True)
            ]
            for later in reversed(range(number))
        ]

    def _count_together(self, hits: Sequence[Hit], number: int) -> list[tuple[Count, int, bool]]:
        """Count `number` requests against all limits of `hits`, or none if one rejects them."""
        counted = [self._count(hit, number) for hit in hits]
        if all(allowed for _, _, allowed in counted):
            return counted
        for hit, (_, _, allowed) in zip(hits, counted, strict=True):
            if allowed:
                self._uncount(hit, number)
        return [(count._replace(current=count.current - number * ok), now, ok) for count, now, ok in counted]

    def uncount(self, hits: Sequence[Hit], number: int = 1, began: int | None = None) -> None:
        """Undo the counting of `number` requests, if the window that `began` then is the current one."""
        for hit in hits:
            self._uncount(hit, number, began)

    @abstractmethod
    def _count(self, hit: Hit, number: int) -> tuple[Count, int, bool]:
        """Count `number` requests if the limit allows all. Return the count, the time (ms), and whether it does."""

    @abstractmethod
    def _uncount(self, hit: Hit, number: int, began: int | None = None) -> None:
        """Subtract `number` from the requests of the current window, but not below 0, if it `began` then."""

    def count_all(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        """Count requests that arrived together; equal ones cost as much as one. Return the statuses of each."""
        counted = self._count_each(Counter(tuple(hits) for hits in requests))
        statuses = {hits: iter(each) for hits, each in counted.items()}
        return [next(statuses[tuple(hits)]) for hits in requests]

    def _count_each(self, numbers: Numbers) -> dict[tuple[Hit, ...], list[list[Status]]]:
        """Count different requests, each as often as `numbers` says. Return the statuses of each."""
        return {hits: self._count_equal(hits, number) for hits, number in numbers.items()}

    @abstractmethod
    def check(self) -> None:
        """Open the counter if that has not been done, or if its file was moved or replaced."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


def advance(limit: Limit, count: Count, now: int) -> Count:
    """Return `count` or, if its window has ended, the count for the window of time that contains `now`."""
    if count.began > now + AHEAD or now >= count.began + 2 * limit.window:
        return Count(now, 0, 0)
    if now >= count.began + limit.window:
        return Count(count.began + limit.window, 0, count.current)
    return count


def is_allowed(limit: Limit, count: Count, now: int, number: int) -> bool:
    """Return whether the limit allows `number` more requests. `count` must be the result of `advance` for `now`."""
    return _unexpired(limit, count, now) + count.current + number <= limit.amount


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
