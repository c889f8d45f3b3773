"""Writes the activity log: calls are queued on the event loop and written in batches, at most 1 s later.

How many requests without a valid token are logged one by one is limited, so that a flood cannot fill the disk.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter

from musicsvc.clock import DAY, MINUTE, Clock
from musicsvc.errors import Damaged, Failure
from musicsvc.networks import client_network
from musicsvc.server.call import Call
from musicsvc.server.jobs.periodic import Periodic
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity import sums
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from musicsvc.wording import quantity

log = logging.getLogger("musicsvc")
WRITE_SECONDS = 0.5
BATCH = 2_000
MOST_WAITING = 50_000
SUMMING_SECONDS = 10.0
FIRST_PRUNING_SECONDS, PRUNING_SECONDS = 60.0, 3_600.0
PAUSE_SECONDS = 0.05  # between two parts of summing or pruning, for new calls
REFUSED = {401, 403, 429}
FAULTY = 400
LONGEST_METHOD, LONGEST_TEXT = 16, 128
FULL_CALLS = 600  # per minute and address, over all workers
MOST_ADDRESSES = 10_000  # per minute; all others are counted together


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
            address = sums.OTHERS
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
            self._finished += [_total_entry(*key, count) for key, count in self._counts.items()]
            self._minute, self._logged, self._counts = minute, {}, {}


class ActivityWriter:
    """Queues calls and writes them to the activity log. If more than MOST_WAITING are queued, calls are dropped."""

    def __init__(self, calls: Log, store: Store, clock: Clock, keep_days: int, workers: int = 1) -> None:
        """`calls`: the log; `store`: records events about lost calls; `workers`: the processes that share the log."""
        self._calls = calls
        self._store = store
        self._clock = clock
        self._keep_days = keep_days
        self._anonymous = AnonymousCalls(clock, workers)
        # By importance: successful calls, which are dropped first, then failed calls, then refused calls.
        self._queues: tuple[deque[Entry], ...] = (deque(), deque(), deque())
        self._batch: list[Entry] = []
        self.written = self.dropped = 0
        self._unreported = 0
        self._writing = Periodic(
            "writing the activity log",
            self._write,
            every=WRITE_SECONDS,
            first=0,
            finish=partial(self._write, last=True),
        )
        self._summing = Periodic("summing the activity log", self._sum, every=SUMMING_SECONDS, first=SUMMING_SECONDS)
        self._pruning = Periodic(
            "deleting old calls from the activity log", self._prune, every=PRUNING_SECONDS, first=FIRST_PRUNING_SECONDS
        )

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues))

    @property
    def counted(self) -> int:
        """The number of calls that are logged only as a total by minute, address and status, not one by one."""
        return self._anonymous.counted

    def unwritten(self) -> list[Entry]:
        return [*self._batch, *chain.from_iterable(self._queues)]

    def __call__(self, call: Call) -> None:
        """Queue a finished call. Beyond a limit per address, calls without a valid token only add to a total."""
        if call.route is not None and call.route.cost.probe and call.status < FAULTY:
            return
        if not self._anonymous.count(call):
            self._queue(_entry(call))

    def _queue(self, entry: Entry) -> None:
        self._queues[_importance(entry)].append(entry)
        successes, failures, refusals = self._queues
        if len(successes) + len(failures) + len(refusals) > MOST_WAITING:
            self._trim()

    def start(self) -> None:
        self._writing.start()
        self._summing.start()
        self._pruning.start()

    async def stop(self) -> None:
        """Write the queued calls, and close the log."""
        await self._pruning.stop()
        await self._summing.stop()
        await self._writing.stop()
        if self.waiting:
            log.error("could not write the activity log before the server stopped: %s calls are lost", self.waiting)
        await asyncio.to_thread(self._calls.close)

    def prune_soon(self) -> None:
        """Delete old calls at once."""
        self._pruning.wake()

    async def forget_after(self, instant: int) -> None:
        """Delete the calls after an instant, in the log and in the queues, because the clock was set back to it."""
        self._anonymous.finished(last=True)
        for queue in self._queues:
            queue.clear()
        await asyncio.to_thread(self._calls.prepare)
        await asyncio.wrap_future(self._calls.write(partial(activity_calls.delete_after, instant)))

    async def _write(self, *, last: bool = False) -> None:
        """Write the queued calls in batches. A failed batch is queued again. `last`: include this minute's totals."""
        batch: list[Entry] = []
        for count in self._anonymous.finished(last=last):
            self._queue(count)
        try:
            await asyncio.to_thread(self._calls.prepare)
            while batch := self._take():
                await asyncio.wrap_future(self._calls.write(partial(activity_calls.add, batch)))
                self.written += sum(entry.request_id != "" for entry in batch)
                await self._report_loss()
        except Failure as failure:
            self._put_back(batch)
            if isinstance(failure, Damaged):
                with suppress(Failure):
                    await asyncio.to_thread(self._calls.replace)
            raise
        except Exception:
            # A call that no database accepts must not block the others forever.
            self._drop(sum(entry.calls for entry in batch))
            raise

    def _take(self) -> list[Entry]:
        """Remove the next batch from the queues and return it. The most important calls are taken first."""
        batch: list[Entry] = []
        for queue in reversed(self._queues):
            batch += [queue.popleft() for _ in range(min(len(queue), BATCH - len(batch)))]
        self._batch = sorted(batch, key=attrgetter("at"))
        return self._batch

    def _put_back(self, batch: list[Entry]) -> None:
        self._batch = []
        for entry in reversed(batch):
            self._queues[_importance(entry)].appendleft(entry)
        self._trim()

    def _trim(self) -> None:
        """If more than MOST_WAITING log entries are queued, drop the oldest of the least important ones."""
        while self.waiting > MOST_WAITING:
            self._drop(next(queue for queue in self._queues if queue).popleft().calls)

    def _drop(self, calls: int) -> None:
        self.dropped += calls
        self._unreported += calls

    async def _report_loss(self) -> None:
        """Record the number of dropped calls as a security event. If this fails, retry after the next batch."""
        if lost := self._unreported:
            reason, now = f"{quantity(lost, 'call')} not in the activity log", self._clock.now()
            event = partial(security_events.add, "activity.lost", reason=reason, now=now, actor="server")
            self._unreported = 0
            try:
                await asyncio.wrap_future(self._store.write(event))
            except Failure:
                self._unreported += lost

    async def _sum(self) -> None:
        """Add calls to the sums of hours and days, some at a time, also those of before an upgrade."""
        await asyncio.to_thread(self._calls.prepare)
        while await asyncio.wrap_future(self._calls.write(sums.advance)) and not self._summing.stopping:
            await self._summing.sleep(PAUSE_SECONDS)

    async def _prune(self) -> None:
        """Delete calls older than `activity.keep_days`, a few at a time so that new calls can be written meanwhile."""
        await asyncio.to_thread(self._calls.prepare)
        unit = partial(activity_calls.prune, self._clock.now() - self._keep_days * DAY)
        while await asyncio.wrap_future(self._calls.write(unit)) and not self._pruning.stopping:
            await self._pruning.sleep(PAUSE_SECONDS)


def _importance(entry: Entry) -> int:
    """Return 0 for a successful call, 1 for a failed call, 2 for a refused call or an entry with totals of calls."""
    if not entry.request_id or entry.status in REFUSED:
        return 2
    return 1 if entry.status >= FAULTY else 0


def _entry(call: Call) -> Entry:
    """Return the log entry of a call, without the query string, headers, body and full path."""
    resource, route = call.resource, call.route
    values = (
        call.at,
        _printable(call.request_id, LONGEST_TEXT),
        call.account_id,
        call.token_id,
        _printable(call.address, LONGEST_TEXT),
        call.method if route is not None else _printable(call.method, LONGEST_METHOD),
        None if route is None else route.path,
        None if resource is None or tokens.PREFIX in resource else _printable(resource, LONGEST_TEXT),
        call.status,
        call.retry_after,
        round(call.milliseconds * 1000) / 1000,
        call.size,
        call.limits_apply,
        resource is not None and route is not None and route.private,
        1,
    )
    return tuple.__new__(Entry, values)  # in a third of the time


def _printable(text: str, length: int) -> str:
    """Return the text cut to this length, with unprintable characters escaped."""
    if len(text) <= length and text.isprintable():
        return text
    return text.encode("unicode_escape").decode()[:length]


def _total_entry(address: str, status: int, count: CallCount) -> Entry:
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
        limits_apply=False,
        private=False,
        calls=count.calls,
    )
