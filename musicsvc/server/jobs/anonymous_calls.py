"""A bound on what requests without a valid token write into the activity log, so that a flood cannot fill the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.clock import MINUTE
from musicsvc.networks import client_network
from musicsvc.store.activity.calls import Entry

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.server.call import Call

FULL_CALLS = 600  # a minute of one address, over all workers
MOST_ADDRESSES = 10_000  # told apart in one minute; all further ones count together
OTHERS = "others"


@dataclass(slots=True)
class CallCount:
    """Calls of one address with one status within a minute, as far as they are not logged one by one."""

    at: int
    calls: int = 0
    milliseconds: float = 0.0
    size: int = 0

    def add(self, call: Call) -> None:
        """Count one more."""
        self.calls += 1
        self.milliseconds += call.milliseconds
        self.size += call.size


class AnonymousCalls:
    """Decides which calls are logged in full, and counts the others by minute, address and status."""

    def __init__(self, clock: Clock, workers: int) -> None:
        """`workers`: the processes that share the number of full calls."""
        self._clock = clock
        self._limit = max(1, FULL_CALLS // workers)
        self._minute = 0
        self._logged: dict[str, int] = {}
        self._counts: dict[tuple[str, int], CallCount] = {}
        self._finished: list[Entry] = []
        self.counted = 0

    def takes(self, call: Call) -> bool:
        """Whether the call has been counted, and is not to be logged by itself."""
        if call.token_id is not None:
            return False
        self._turn()
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
        """The counts of the minutes that are over, each once; `last`: those of the current minute too."""
        self._turn(end=last)
        found, self._finished = self._finished, []
        return found

    def _turn(self, *, end: bool = False) -> None:
        """Begin a minute where another one has come."""
        minute = self._clock.now() // MINUTE
        if minute != self._minute or end:
            self._finished += [_entry(*key, count) for key, count in self._counts.items()]
            self._minute, self._logged, self._counts = minute, {}, {}


def _entry(address: str, status: int, count: CallCount) -> Entry:
    """The count as the log keeps it: a row without a request id, that stands for `calls` calls."""
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
