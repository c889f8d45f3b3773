"""The log of calls as the server writes it: noted on the event loop, written in batches off it, at most 1 s behind."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from musicsvc.clock import DAY
from musicsvc.errors import Damaged, Failure
from musicsvc.server.jobs.anonymous_calls import AnonymousCalls
from musicsvc.store.accounts import security_events, tokens
from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity.calls import Entry

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.server.call import Call
    from musicsvc.store.activity.log import Log
    from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
WRITE_SECONDS = 0.5
BATCH = 2_000
MOST_WAITING = 50_000
FIRST_PRUNING_SECONDS, PRUNING_SECONDS, PRUNING_PAUSE_SECONDS = 60.0, 3_600.0, 0.05
PROBES = {"/healthz", "/readyz", "/metrics"}  # asked every few seconds by machines; noted where they fail
REFUSED = {401, 403, 429}
FAULTY = 400
LONGEST_METHOD, LONGEST_TEXT = 16, 128


class ActivityWriter:
    """Takes note of calls; what cannot be written waits in memory up to a bound, and no request ever waits for it."""

    def __init__(self, calls: Log, store: Store, clock: Clock, keep_days: int, workers: int = 1) -> None:
        """`calls` is where the log is kept; `store` keeps an event for each loss; `workers` write into the same log."""
        self._calls = calls
        self._store = store
        self._clock = clock
        self._keep_days = keep_days
        self._anonymous = AnonymousCalls(clock, workers)
        # In the order in which they are given up: ordinary calls, faulty ones, refused ones.
        self._queues: tuple[deque[Entry], ...] = (deque(), deque(), deque())
        self._under_way: list[Entry] = []
        self.written = self.dropped = 0
        self._untold = 0
        self._failing = False
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """How many calls are not written yet."""
        return sum(map(len, self._queues))

    @property
    def counted(self) -> int:
        """How many calls are in the log as counts only."""
        return self._anonymous.counted

    def unwritten(self) -> list[Entry]:
        """Return the calls that are not written yet, or are just being written."""
        return [*self._under_way, *chain.from_iterable(self._queues)]

    def __call__(self, call: Call) -> None:
        """Take note of the call."""
        if call.route is not None and call.route.path in PROBES and call.status < FAULTY:
            return
        if not self._anonymous.takes(call):
            self._queue(_entry(call))

    def _queue(self, entry: Entry) -> None:
        self._queues[_rank(entry)].append(entry)
        self._trim()

    def _queue_counts(self, *, last: bool = False) -> None:
        for entry in self._anonymous.finished(last=last):
            self._queue(entry)

    def start(self) -> None:
        """Write from now on, and delete what is too old."""
        self._tasks = [asyncio.create_task(self._write_for_ever()), asyncio.create_task(self._prune_for_ever())]

    async def stop(self) -> None:
        """Write what waits, a last time."""
        self._ended.set()
        await asyncio.gather(*self._tasks)
        self._queue_counts(last=True)
        await self._write()
        if self.waiting:
            log.error("the activity log could not be written to its end: %s calls are lost", self.waiting)
        await asyncio.to_thread(self._calls.close)

    async def _write_for_ever(self) -> None:
        while True:
            await self._write()
            if await self._ends_within(WRITE_SECONDS):
                break

    async def _write(self) -> None:
        """Write what waits, a batch at a time; what cannot be written now waits on."""
        batch: list[Entry] = []
        self._queue_counts()
        try:
            await asyncio.to_thread(self._calls.prepare)
            while batch := self._take():
                await asyncio.wrap_future(self._calls.write(partial(activity_calls.add, batch)))
                self.written += sum(not entry.is_count for entry in batch)
                await self._recover()
        except Failure as failure:
            self._put_back(batch)
            self._complain(failure.here)
            if isinstance(failure, Damaged):
                await self._replace()
        except Exception:
            # A call that no database takes must not keep the others waiting for ever.
            log.exception("writing the activity log failed")
            self._lose(sum(entry.calls for entry in batch))

    async def _replace(self) -> None:
        try:
            await asyncio.to_thread(self._calls.replace)
        except Failure as failure:
            self._complain(failure.here)

    def _take(self) -> list[Entry]:
        """The calls to be written next, refused ones first."""
        batch: list[Entry] = []
        for queue in reversed(self._queues):
            while queue and len(batch) < BATCH:
                batch.append(queue.popleft())
        self._under_way = sorted(batch, key=attrgetter("at"))
        return self._under_way

    def _put_back(self, batch: list[Entry]) -> None:
        self._under_way = []
        for entry in reversed(batch):
            self._queues[_rank(entry)].appendleft(entry)
        self._trim()

    def _trim(self) -> None:
        """Give up the oldest of the least important calls, as long as too many wait."""
        while self.waiting > MOST_WAITING:
            self._lose(next(queue for queue in self._queues if queue).popleft().calls)

    def _lose(self, calls: int) -> None:
        self.dropped += calls
        self._untold += calls

    def _complain(self, message: str) -> None:
        """Say it once until it is over."""
        if not self._failing:
            log.warning("the activity log cannot be written, calls wait in memory: %s", message)
        self._failing = True

    async def _recover(self) -> None:
        if self._failing:
            log.warning("the activity log is written again")
        self._failing = False
        if lost := self._untold:
            reason, now = f"{lost} calls are not in the activity log", self._clock.now()
            note = partial(security_events.add, "activity.lost", reason=reason, now=now, actor="server")
            self._untold = 0
            try:
                await asyncio.wrap_future(self._store.write(note))
            except Failure:
                self._untold += lost

    async def _prune_for_ever(self) -> None:
        pause = FIRST_PRUNING_SECONDS
        while not await self._ends_within(pause):
            pause = PRUNING_SECONDS
            try:
                await self._prune()
            except Failure as failure:
                log.warning("deleting old calls from the activity log: %s", failure.here)
            except Exception:
                log.exception("deleting old calls from the activity log failed")

    async def _prune(self) -> None:
        unit = partial(activity_calls.prune, self._clock.now() - self._keep_days * DAY)
        while await asyncio.wrap_future(self._calls.write(unit)):
            if await self._ends_within(PRUNING_PAUSE_SECONDS):
                break

    async def _ends_within(self, seconds: float) -> bool:
        """Wait so long; whether the end has come."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _rank(entry: Entry) -> int:
    """How long an entry is held on to: 0 an ordinary call, 1 a faulty one, 2 a refused one, or a count of many."""
    return 2 if entry.is_count or entry.status in REFUSED else int(entry.status >= FAULTY)


def _entry(call: Call) -> Entry:
    """What is kept of the call: no query, no header, no body, and of the path what the table of endpoints names."""
    resource = call.resource
    return Entry(
        at=call.at,
        request_id=_bounded(call.request_id, LONGEST_TEXT),
        account_id=call.account_id,
        token_id=call.token_id,
        address=_bounded(call.address, LONGEST_TEXT),
        method=_bounded(call.method, LONGEST_METHOD),
        route=None if call.route is None else call.route.path,
        resource=None if resource is None or tokens.PREFIX in resource else _bounded(resource, LONGEST_TEXT),
        status=call.status,
        retry_after=call.retry_after,
        milliseconds=round(call.milliseconds, 3),
        size=call.size,
        judged=call.judged,
        private=resource is not None and call.route is not None and call.route.private,
    )


def _bounded(text: str, length: int) -> str:
    """The text cut to this length, in signs that every store and every terminal takes."""
    if len(text) <= length and text.isprintable():
        return text
    return text.encode("unicode_escape").decode()[:length]
