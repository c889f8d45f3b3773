"""The sliding-window rule of rate limits. Times are in milliseconds.

A limit allows `amount` requests in any window of time. Only the numbers of requests in the current and the previous
window are stored. Requests of the previous window are assumed to be evenly spaced, and expire one by one during the
current window. Rejected requests are not counted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from musicsvc.errors import Unavailable

SECOND = 1000
SHARE_AHEAD = 5  # one process counts at most this part of the remaining requests in advance
LAST_AHEAD = SECOND  # before the end of a window, no requests are counted in advance
AHEAD = 5 * SECOND  # a window that begins further in the future was stored before the clock was reset
# Added to the elapsed time: the first request of a window expires when the next window begins, although times are
# rounded. A client that keeps exactly to the rate is never rejected.
GRACE = 2

# The rule as an upsert into `quota (key, began, taken, earlier, ends)`: `taken` counts the current window, `earlier`
# the previous one, and `excluded.began` is now. A rejected request changes nothing and returns no row.
RESTART = f"(quota.began > excluded.began + {AHEAD} OR excluded.began >= quota.began + 2 * {{window}})"
NEXT = "excluded.began >= quota.began + {window}"
ELAPSED_OF_NEXT = f"{{least}}({{window}}, excluded.began - quota.began - {{window}} + {GRACE})"
ELAPSED = f"{{least}}({{window}}, {{greatest}}(0, excluded.began - quota.began) + {GRACE})"
UPSERT = f"""
    ON CONFLICT (key) DO UPDATE SET
        began = CASE WHEN {RESTART} THEN excluded.began WHEN {NEXT} THEN quota.began + {{window}} ELSE quota.began END,
        taken = CASE WHEN {RESTART} OR {NEXT} THEN 1 ELSE quota.taken + 1 END,
        earlier = CASE WHEN {RESTART} THEN 0 WHEN {NEXT} THEN quota.taken ELSE quota.earlier END,
        ends = CASE WHEN {RESTART} OR {NEXT} THEN excluded.ends ELSE quota.ends END
    WHERE CASE
        WHEN {RESTART} THEN 0
        WHEN {NEXT} THEN quota.taken * ({{window}} - {ELAPSED_OF_NEXT}) / {{window}}
        ELSE quota.earlier * ({{window}} - {ELAPSED}) / {{window}} + quota.taken END < {{amount}}
    RETURNING began, taken, earlier
"""


class Busy(Unavailable):
    """Another process holds the lock of the counter. Retry in a moment."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: at most `amount` requests in `window` milliseconds."""

    name: str
    amount: int
    window: int


class Hit(NamedTuple):
    """A request to count against one limit. `subject` identifies the token or the network address that sent it.

    If the request is allowed, up to `ahead` further requests are counted in advance, to save the counting later.
    """

    limit: Limit
    subject: str
    ahead: int = 0

    @property
    def key(self) -> str:
        return f"{self.limit.name}:{self.subject}"


class Count(NamedTuple):
    """The number of requests in the current window of time, which began at `began`, and in the previous window."""

    began: int
    current: int
    previous: int


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a rate limit after a request. `remaining` more requests are allowed at this moment.

    `wait` is the time in milliseconds until the window ends or, if `remaining` is 0, until another request is allowed.
    Of the remaining requests, `ahead` have been counted in advance, in the window that began at `began`.
    """

    limit: Limit
    allowed: bool
    remaining: int
    wait: int
    began: int = 0
    ahead: int = 0


class HitCounter(ABC):
    """Counts requests against rate limits."""

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request against all limits of `hits`, or none if one rejects it. Return one status per limit."""
        counted = [self._count(hit) for hit in hits]
        if not all(allowed for _, _, allowed in counted):
            for hit, (_, _, allowed) in zip(hits, counted, strict=True):
                if allowed:
                    self._uncount(hit)
            refused = [(count._replace(current=count.current - ok), now, ok) for count, now, ok in counted]
            return [
                status(hit.limit, count, now, allowed=ok) for hit, (count, now, ok) in zip(hits, refused, strict=True)
            ]
        return [self._count_ahead(hit, count, now) for hit, (count, now, _) in zip(hits, counted, strict=True)]

    def _count_ahead(self, hit: Hit, count: Count, now: int) -> Status:
        """Count further requests in advance, unless few more are allowed or the window ends soon. Return the status."""
        found = status(hit.limit, count, now, allowed=True)
        ahead = min(hit.ahead, found.remaining // SHARE_AHEAD) if found.wait > LAST_AHEAD else 0
        if not ahead:
            return found
        self._add(hit, ahead, count.began)
        return replace(found, ahead=ahead)

    def give_back(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        """Subtract requests that were counted in advance and not used. `unused`: (hit, start of the window, number)."""
        for hit, began, number in unused:
            self._add(hit, -number, began)

    def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""
        for hit in hits:
            self._uncount(hit)

    @abstractmethod
    def _count(self, hit: Hit) -> tuple[Count, int, bool]:
        """Count the request if its limit allows it. Return the count, the time (ms), and whether it was allowed."""

    @abstractmethod
    def _uncount(self, hit: Hit) -> None:
        """Subtract 1 from the number of requests in the current window, unless it is 0."""

    @abstractmethod
    def _add(self, hit: Hit, number: int, began: int) -> None:
        """Add `number` to the requests in the window that began at `began`, if it is still the current window."""

    @abstractmethod
    def purge(self) -> None:
        """Delete expired counts, and the oldest counts if too many are stored."""


class SharedHitCounter(Protocol):
    """Counts the requests to several processes. Every method raises Unavailable if counting is impossible.

    All methods may block, so call them in a thread, except `count_now` and, if `is_local` is set, `give_back`.
    """

    threads: int
    is_local: bool  # counting takes microseconds, so `count_now` and `give_back` are called on the event loop

    def open(self) -> None:
        """Open the counter, or reopen it after a fault."""

    def count_now(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        """Do the same as `count` for several requests. Raise Busy, and count none, instead of waiting for a lock."""

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request against all limits of `hits`, or none if one rejects it. Return one status per limit."""

    def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""

    def give_back(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        """Subtract requests that were counted in advance and not used. `unused`: (hit, start of the window, number)."""

    def purge(self) -> None:
        """Delete expired counts, and the oldest counts if too many are stored."""

    def in_place(self) -> bool:
        """Return False if the file with the counts was moved or replaced, so new processes would use another file."""

    def close(self) -> None:
        """Close files and connections."""


def advance(limit: Limit, count: Count, now: int) -> Count:
    """Return `count` or, if its window has ended, the count for the window of time that contains `now`."""
    if count.began > now + AHEAD or now >= count.began + 2 * limit.window:
        return Count(now, 0, 0)
    if now >= count.began + limit.window:
        return Count(count.began + limit.window, 0, count.current)
    return count


def is_allowed(limit: Limit, count: Count, now: int) -> bool:
    """Return True if the limit allows one more request. `count` must be the result of `advance` for `now`."""
    return _unexpired(limit, count, now) + count.current < limit.amount


def status(limit: Limit, count: Count, now: int, *, allowed: bool) -> Status:
    """Return the status after an allowed or rejected request. `count` must be the result of `advance` for `now`."""
    remaining = max(0, limit.amount - _unexpired(limit, count, now) - count.current) if allowed else 0
    wait = _until_allowed(limit, count, now) if remaining == 0 else count.began + limit.window - now
    return Status(limit, allowed, remaining, wait, count.began)


def _unexpired(limit: Limit, count: Count, now: int) -> int:
    """Return the number of requests of the previous window that still count against the limit at `now`."""
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
