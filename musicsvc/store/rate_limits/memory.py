"""Count requests against rate limits in the memory of one process."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from musicsvc.store.rate_limits.window import Count, Hit, HitCounter, Limit, Status, advance, is_allowed, status

MAX_KEYS = 50_000
Counts = Sequence[tuple[str, int, int, int, int]]  # key, start of the window, current and previous number, expiry


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
