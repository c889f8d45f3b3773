"""Leases: requests that a process counts toward a shared limit in advance, and then allows without asking again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from musicsvc.store.rate_limits.window import SECOND, Hit, Status

LASTS = SECOND  # at most; not beyond the window in which its requests were counted
MOST, SHARE, SINGLE = 64, 20, 100  # requests; part of what remains; the last ones of a limit, counted one by one


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
                lease = self._leases.setdefault(hit.key, Lease(hit, now, now + min(LASTS, status.wait), []))
                lease.statuses.append(status)
                lease.used += number < requests
