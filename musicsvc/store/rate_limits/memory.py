"""Count requests against rate limits in the memory of one process."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from musicsvc.store.rate_limits.window import Count, Hit, HitCounter, advance, is_allowed

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

    def _count(self, hit: Hit, number: int) -> tuple[Count, int, bool]:
        now, limit = self._clock(), hit.limit
        stored = self._counts.get(hit.key)
        count = Count(now, 0, 0) if stored is None else advance(limit, stored[0], now)
        allowed = is_allowed(limit, count, now, number)
        if allowed:
            count = count._replace(current=count.current + number)
            self._counts[hit.key] = count, count.began + 2 * limit.window
            self._counts.move_to_end(hit.key)
            self._send_change(hit.key, number)
            if len(self._counts) > self._max_keys:
                self._counts.popitem(last=False)
        return count, now, allowed

    def _uncount(self, hit: Hit, number: int) -> None:
        if hit.key in self._counts:
            count, ends = self._counts[hit.key]
            self._counts[hit.key] = count._replace(current=max(0, count.current - number)), ends
            self._send_change(hit.key, -number)

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
