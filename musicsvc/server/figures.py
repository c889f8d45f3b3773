"""Which figures the parts of a process give to /metrics, beside the requests that are counted as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.wire import JsonHandler
from musicsvc.store.workload import database_bytes, log_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.server.log_writer import Outlet
    from musicsvc.server.metrics import Metrics
    from musicsvc.server.wire import JsonServer
    from musicsvc.store.database import Store


def of_server(metrics: Metrics, server: Callable[[], JsonServer | None]) -> None:
    """Connections and what is under way on them; `server` is None before it listens."""

    def connections() -> int:
        running = server()
        return len(running.connections) if running is not None else 0

    def in_flight() -> int:
        running = server()
        handlers = running.connections if running is not None else []
        return sum(handler.unanswered for handler in handlers if isinstance(handler, JsonHandler))

    metrics.gauge("musicsvc_connections", "Connections open.", connections)
    metrics.gauge("musicsvc_requests_in_flight", "Requests come and not answered yet.", in_flight)


def of_logs(metrics: Metrics, outlet: Outlet) -> None:
    """What became of the messages."""
    about = "Log lines that stderr did not take."
    metrics.counter("musicsvc_log_lines_dropped", about, lambda: outlet.lost)


def of_store(metrics: Metrics, store: Store) -> None:
    """What waits for the store, what it has committed, and what it takes on disk."""
    done = store.workload
    metrics.gauge("musicsvc_store_reads_waiting", "Units that wait for a reader.", lambda: store.waiting()[0])
    metrics.gauge("musicsvc_store_writes_waiting", "Units that wait for the writer.", lambda: store.waiting()[1])
    metrics.counter("musicsvc_store_commits", "Transactions committed.", lambda: done.commits)
    metrics.counter("musicsvc_store_units", "Units of work in committed transactions.", lambda: done.units)
    metrics.counter("musicsvc_store_commit_seconds", "Time spent in commits.", lambda: done.seconds)
    metrics.once("musicsvc_database_bytes", "Size of the database file.", lambda: database_bytes(store.url))
    metrics.once("musicsvc_wal_bytes", "Size of its write-ahead log.", lambda: log_bytes(store.url))
