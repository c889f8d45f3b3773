"""Limits how many requests without a valid token are logged one by one, so that a flood cannot fill the disk."""

from dataclasses import dataclass

from musicsvc.clock import MINUTE, Clock
from musicsvc.networks import client_network
from musicsvc.server.call import Call
from musicsvc.store.activity.calls import Entry

FULL_CALLS = 600  # per minute and address, over all workers
MOST_ADDRESSES = 10_000  # per minute; all others are counted together
OTHERS = "others"


@dataclass(slots=True)
class CallCount:
    """Totals of calls with the same minute, address and status."""

    at: int  # the time of the first call
    calls: int = 0
    milliseconds: float = 0.0
    size: int = 0  # bytes of all responses

    def add(self, call: Call) -> None:
        self.calls += 1
        self.milliseconds += call.milliseconds
        self.size += call.size


class AnonymousCalls:
    """Decides which anonymous calls are logged one by one, and totals the others by minute, address and status."""

    def __init__(self, clock: Clock, workers: int) -> None:
        """`workers`: the number of processes that share the limit FULL_CALLS."""
        self._clock = clock
        self._limit = max(1, FULL_CALLS // workers)
        self._minute = 0
        self._logged: dict[str, int] = {}
        self._counts: dict[tuple[str, int], CallCount] = {}
        self._finished: list[Entry] = []
        self.counted = 0

    def count(self, call: Call) -> bool:
        """Count a call. Return True if it is anonymous and beyond the limit. Such a call is only added to a total."""
        if call.token_id is not None:
            return False
        self._begin_minute()
        address = client_network(call.address)
        if address not in self._logged and len(self._logged) >= MOST_ADDRESSES:
            address = OTHERS
        logged = self._logged.get(address, 0)
        if logged < self._limit:
            self._logged[address] = logged + 1
            return False
        self._counts.setdefault((address, call.status), CallCount(call.at)).add(call)
        self.counted += 1
        return True

    def finished(self, *, last: bool = False) -> list[Entry]:
        """Return the totals of past minutes as log entries, each only once. `last`: include the current minute."""
        self._begin_minute(end=last)
        found, self._finished = self._finished, []
        return found

    def _begin_minute(self, *, end: bool = False) -> None:
        """If a new minute has begun or `end` is set, turn the totals into log entries and begin new totals."""
        minute = self._clock.now() // MINUTE
        if minute != self._minute or end:
            self._finished += [_entry(*key, count) for key, count in self._counts.items()]
            self._minute, self._logged, self._counts = minute, {}, {}


def _entry(address: str, status: int, count: CallCount) -> Entry:
    """Return one log entry for all the calls that `count` totals. The entry has no request id."""
    return Entry(
        at=count.at,
        request_id="",
        account_id=None,
        token_id=None,
        address=address,
        method="",
        route=None,
        resource=None,
        status=status,
        retry_after=None,
        milliseconds=round(count.milliseconds, 3),
        size=count.size,
        judged=False,
        private=False,
        calls=count.calls,
    )
