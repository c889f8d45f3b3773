"""Merge logged API calls and security events by time."""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, TypeVar

from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Event

T = TypeVar("T", "Entry", "Event")
# Concurrent writers take their ids before they commit, so this many ids are read again for late commits.
OVERLAP = 1_000


def build_filters(
    kind: str, of_calls: Mapping[str, Any], common: Mapping[str, Any]
) -> tuple[activity_calls.Filter | None, security_events.Filter | None]:
    """Return two filters, for API calls and for security events. None in place of a filter excludes calls or events.

    `kind`: `all`, `calls` or `events`. `of_calls`: conditions that only calls can meet, so any of them excludes events.
    """
    calls_only = kind == "calls" or any(value is not None for value in of_calls.values())
    return (
        None if kind == "events" else activity_calls.Filter(**of_calls, **common),
        None if calls_only else security_events.Filter(**common),
    )


class Timeline:
    """Reads the logged API calls and security events that match filters. A filter of None excludes calls or events."""

    def __init__(
        self, store: Store, log: Log, calls: activity_calls.Filter | None, events: security_events.Filter | None
    ) -> None:
        self._log = log
        self._looked = False
        self._calls = calls and Tail(
            log, activity_calls.last_id, lambda last: activity_calls.written_after(last, calls)
        )
        self._events = events and Tail(
            store, security_events.last_id, lambda last: security_events.written_after(last, events)
        )
        self._find_calls = lambda limit: activity_calls.find(calls or activity_calls.ALL, limit=limit)
        self._find_events = lambda limit: security_events.find(events or security_events.ALL, limit=limit)

    def newest(self, limit: int) -> list[Entry | Event]:
        """Return the newest `limit` calls and events together, oldest first."""
        calls = self._calls.begin(lambda: self._find_calls(limit)) if self._calls and self._log_exists() else []
        events = self._events.begin(lambda: self._find_events(limit)) if self._events else []
        return _merged(calls, events)[-limit:]

    def later(self) -> list[Entry | Event]:
        """Return the calls and events written since the last call of `newest` or `later`."""
        return _merged(
            self._calls.more() if self._calls and self._log_exists() else [],
            self._events.more() if self._events else [],
        )

    def _log_exists(self) -> bool:
        self._looked = self._looked or self._log.open_existing()
        return self._looked


class Tail(Generic[T]):
    """Reads the rows that are added to a table, like `tail -f`."""

    def __init__(
        self, store: Store, last_id: Callable[[], int], written_after: Callable[[int], list[tuple[int, T]]]
    ) -> None:
        self._store = store
        self._written_after: Callable[[int], list[tuple[int, T]]] = written_after
        self._last_id = last_id
        self._last = 0
        self._seen: Collection[int] = ()

    def begin(self, find: Callable[[], list[T]]) -> list[T]:
        """Return the result of `find`, and remember the newest row. The next `more` returns rows written after this."""

        def unit() -> tuple[list[T], int, list[tuple[int, T]]]:
            last = self._last_id()
            return find(), last, self._written_after(last - OVERLAP)

        found, self._last, rows = self._store.read(unit).result()
        self._seen = {key for key, _ in rows}
        return found

    def more(self) -> list[T]:
        """Return the rows written since the last call of `begin` or `more`."""

        def unit() -> tuple[int, list[tuple[int, T]]]:
            return self._last_id(), self._written_after(self._last - OVERLAP)

        last, rows = self._store.read(unit).result()
        new = [row for key, row in rows if key not in self._seen]
        # After a full slice the remaining rows come with the next call.
        self._last = rows[-1][0] if len(rows) >= activity_calls.SLICE else max(last, self._last)
        self._seen = {key for key, _ in rows if key > self._last - OVERLAP}
        return new


def _merged(calls: Iterable[Entry], events: Iterable[Event]) -> list[Entry | Event]:
    both: list[list[Entry] | list[Event]] = [sorted(calls, key=attrgetter("at")), sorted(events, key=attrgetter("at"))]
    return list(heapq.merge(*both, key=attrgetter("at")))
