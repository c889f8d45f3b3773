"""Requests counted toward a rate limit before they arrive, so that most requests of a busy client need no transaction.

A process counts at most a fifth of a limit's remaining requests in advance. A tenth of a second later, it gives back
the requests that did not arrive: it subtracts them from the shared counter. A request is refused only after all
processes have given back their unused requests.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from musicsvc.store.rate_limits.window import Hit, Status

KEPT_SECONDS = 0.1
SETTLED_SECONDS = 2 * KEPT_SECONDS  # until every process has given back the requests that it had counted in advance
FEWEST, MOST = 4, 64


@dataclass(slots=True)
class Advance:
    """The requests counted in advance for one limit of one client."""

    hit: Hit
    status: Status
    until: float
    used: int = 0


class HitsAhead:
    """The requests counted in advance by this process. Use it on the event loop only."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._advances: dict[str, Advance] = {}
        self._used: dict[str, int] = {}  # by the advances that ended last
        self._surplus: list[tuple[Hit, int, int]] = []  # unused when the next advance for the same limit began
        self._asked: set[str] = set()  # limits for which requests are being counted in advance

    def __bool__(self) -> bool:
        return bool(self._advances or self._used or self._surplus)

    def use(self, hits: Sequence[Hit]) -> list[Status] | None:
        """Use up one request counted in advance for each limit of this request. Return the status of each limit.

        Return None if a limit has no request left that was counted in advance.
        """
        now = self._monotonic()
        found = [self._advances.get(hit.key) for hit in hits]
        usable = [each for each in found if each is not None and each.used < each.status.ahead and now < each.until]
        return [_use(each, now) for each in usable] if len(usable) == len(hits) else None

    def ask(self, hits: Sequence[Hit], at_least: int = 0) -> list[Hit]:
        """Return the hits, each with the number of requests to count in advance.

        The number is `at_least`, or twice the number used before if that is more. It is 0 until the result of the last
        call for the same limit has arrived.
        """
        asked = [
            hit._replace(ahead=0 if hit.key in self._asked else max(at_least, self._number(hit.key))) for hit in hits
        ]
        self._asked.update(hit.key for hit in hits)
        return asked

    def _number(self, key: str) -> int:
        known = self._advances.get(key)
        used = self._used.get(key) if known is None else known.used
        return 0 if used is None or _unused(known) else min(MOST, max(FEWEST, 2 * used))

    def add(self, hits: Sequence[Hit], statuses: Sequence[Status]) -> list[Status]:
        """Store the requests counted in advance for each limit. Return the status of each limit.

        The remaining requests of a status include those that were counted in advance earlier and have not arrived yet.
        """
        now = self._monotonic()
        return [self._add(hit, status, now) for hit, status in zip(hits, statuses, strict=True)]

    def _add(self, hit: Hit, status: Status, now: float) -> Status:
        self._asked.discard(hit.key)
        known = self._advances.get(hit.key)
        left = 0 if known is None else known.status.ahead - known.used
        shown = replace(status, remaining=status.remaining + left) if left else status
        if known is not None and left and not status.ahead:
            known.status = replace(known.status, remaining=shown.remaining + known.used)
        elif status.allowed:
            self._surplus += _unused(known)
            self._advances[hit.key] = Advance(hit, shown, now + KEPT_SECONDS)
        return shown

    def end(self, *, everything: bool = False) -> list[tuple[Hit, int, int]]:
        """Remove the requests counted in advance KEPT_SECONDS ago or earlier, or all if `everything` is set.

        Return those that did not arrive: for each limit the hit, the start of its window, and the number to give back.
        """
        now = self._monotonic()
        ended = [each for each in self._advances.values() if everything or each.until <= now]
        self._used = {each.hit.key: each.used for each in ended}
        for each in ended:
            del self._advances[each.hit.key]
        self._asked.clear()  # a request whose client has gone gets no result
        surplus, self._surplus = self._surplus, []
        return surplus + [unused for each in ended for unused in _unused(each)]

    def keep(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        """Store requests that did not arrive but could not be given back. The next call of `end` returns them again."""
        self._surplus += unused


def _use(advance: Advance, now: float) -> Status:
    advance.used += 1
    status = advance.status
    elapsed = int((now - advance.until + KEPT_SECONDS) * 1000)
    return Status(
        status.limit, allowed=True, remaining=status.remaining - advance.used, wait=max(0, status.wait - elapsed)
    )


def _unused(advance: Advance | None) -> list[tuple[Hit, int, int]]:
    left = 0 if advance is None else advance.status.ahead - advance.used
    return [] if advance is None or left == 0 else [(advance.hit, advance.status.began, left)]
