"""Calls and security events as one course of time: what there is, and what comes."""

from __future__ import annotations

import heapq
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from musicsvc.store.accounts import security_events
from musicsvc.store.activity import calls as activity_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from musicsvc.store.accounts.security_events import Event
    from musicsvc.store.activity.calls import Entry
    from musicsvc.store.activity.log import Log
    from musicsvc.store.engine.store import Store

T = TypeVar("T", "Entry", "Event")
# Processes that write at the same time take their ids before they commit: so far back is looked for late ones.
OVERLAP = 1_000


class History:
    """What is wanted of the log of calls and of the security events; None wants nothing of it."""

    def __init__(
        self, store: Store, log: Log, calls: activity_calls.Filter | None, acts: security_events.Filter | None
    ) -> None:
        self._log = log
        self._looked = False
        self._calls = calls and Tail(
            log, activity_calls.last_id, lambda last: activity_calls.written_after(last, calls)
        )
        self._acts = acts and Tail(
            store, security_events.last_id, lambda last: security_events.written_after(last, acts)
        )
        self._find_calls = lambda limit: activity_calls.find(calls or activity_calls.ALL, limit=limit)
        self._find_acts = lambda limit: security_events.find(acts or security_events.ALL, limit=limit)

    def newest(self, limit: int) -> list[Entry | Event]:
        """The newest so many, oldest of them first."""
        calls = self._calls.begin(lambda: self._find_calls(limit)) if self._calls and self._there() else []
        acts = self._acts.begin(lambda: self._find_acts(limit)) if self._acts else []
        return _merged(calls, acts)[-limit:]

    def later(self) -> list[Entry | Event]:
        """What was written since the last question."""
        return _merged(
            self._calls.more() if self._calls and self._there() else [], self._acts.more() if self._acts else []
        )

    def _there(self) -> bool:
        """Whether there is a log yet."""
        self._looked = self._looked or self._log.open_existing()
        return self._looked


class Tail(Generic[T]):
    """The end of a table that grows."""

    def __init__(
        self, store: Store, last_id: Callable[[], int], written_after: Callable[[int], list[tuple[int, T]]]
    ) -> None:
        self._store = store
        self._written_after: Callable[[int], list[tuple[int, T]]] = written_after
        self._last_id = last_id
        self._last = 0
        self._seen: Collection[int] = ()

    def begin(self, find: Callable[[], list[T]]) -> list[T]:
        """What is found, and from now on whatever comes after it."""

        def unit() -> tuple[list[T], int, list[tuple[int, T]]]:
            last = self._last_id()
            return find(), last, self._written_after(last - OVERLAP)

        found, self._last, rows = self._store.read(unit).result()
        self._seen = {key for key, _ in rows}
        return found

    def more(self) -> list[T]:
        """What has come since."""

        def unit() -> tuple[int, list[tuple[int, T]]]:
            return self._last_id(), self._written_after(self._last - OVERLAP)

        last, rows = self._store.read(unit).result()
        new = [row for key, row in rows if key not in self._seen]
        # A slice that is full may have left some out: they come with the next question.
        self._last = rows[-1][0] if len(rows) >= activity_calls.SLICE else max(last, self._last)
        self._seen = {key for key, _ in rows if key > self._last - OVERLAP}
        return new


def _merged(calls: Iterable[Entry], acts: Iterable[Event]) -> list[Entry | Event]:
    both: list[list[Entry] | list[Event]] = [sorted(calls, key=attrgetter("at")), sorted(acts, key=attrgetter("at"))]
    return list(heapq.merge(*both, key=attrgetter("at")))
