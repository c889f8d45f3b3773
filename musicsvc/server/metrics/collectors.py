"""Which figures the parts of a process give to /metrics, beside the requests that are counted as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.clock import SECOND
from musicsvc.server.network.protocol import JsonHandler
from musicsvc.store.backups.folder import found_damaged, newest
from musicsvc.store.engine.sqlite.files import database_bytes, wal_bytes
from musicsvc.store.engine.url import path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.clock import Clock
    from musicsvc.config import Settings
    from musicsvc.server.jobs.abuse_monitor import AbuseMonitor
    from musicsvc.server.jobs.activity_writer import ActivityWriter
    from musicsvc.server.logs.writer import LogWriter
    from musicsvc.server.metrics.registry import Metrics
    from musicsvc.server.network.acceptor import Door
    from musicsvc.server.network.http_server import JsonServer
    from musicsvc.server.responses.memory_budget import AnswerMemory
    from musicsvc.store.backups.folder import Entry
    from musicsvc.store.engine.store import Store


def of_connections(metrics: Metrics, server: Callable[[], JsonServer | None], door: Callable[[], Door | None]) -> None:
    """Connections and what is under way on them; both are None before the server listens."""

    def open_now() -> int:
        running = server()
        return len(running.connections) if running is not None else 0

    def in_flight() -> int:
        running = server()
        handlers = running.connections if running is not None else []
        return sum(handler.unanswered for handler in handlers if isinstance(handler, JsonHandler))

    def sent_away() -> int:
        way_in = door()
        return way_in.sent_away if way_in is not None else 0

    metrics.gauge("musicsvc_connections", "Connections open.", open_now)
    metrics.counter("musicsvc_connections_refused", "Connections for which there was no room.", sent_away)
    metrics.gauge("musicsvc_requests_in_flight", "Requests come and not answered yet.", in_flight)


def of_calls(metrics: Metrics, activity: ActivityWriter, monitor: AbuseMonitor) -> None:
    """What became of the log of calls, and of those whom it convicts."""
    metrics.counter("musicsvc_activity_written", "Calls in the activity log.", lambda: activity.written)
    metrics.counter("musicsvc_activity_counted", "Calls that it only counts.", lambda: activity.counted)
    metrics.counter("musicsvc_activity_dropped", "Calls that it could not take.", lambda: activity.dropped)
    metrics.gauge("musicsvc_activity_waiting", "Calls on their way to it.", lambda: activity.waiting)
    metrics.counter("musicsvc_tokens_revoked", "Tokens revoked for abuse.", lambda: monitor.revoked)


def of_answers(metrics: Metrics, memory: AnswerMemory) -> None:
    """Memory that answers hold until they are sent."""
    about = "Memory of answers of 64 KiB and more that are not sent yet."
    metrics.gauge("musicsvc_answer_memory_bytes", about, lambda: memory.total)


def of_backups(metrics: Metrics, settings: Settings, clock: Clock) -> None:
    """The last good backup; nothing where there is none, and on PostgreSQL."""
    if path_of(settings.store_url) is None:
        return

    def last() -> Entry | None:
        folder = settings.backup_folder
        return newest(folder, clock.now(), damaged=found_damaged(folder))

    def age() -> float | None:
        found = last()
        return None if found is None else (clock.now() - found.at) / SECOND

    def size() -> float | None:
        found = last()
        return None if found is None else found.file.stat().st_size

    metrics.once("musicsvc_backup_age_seconds", "Time since the last good backup.", age)
    metrics.once("musicsvc_backup_bytes", "Size of the last good backup.", size)


def of_logs(metrics: Metrics, writer: LogWriter) -> None:
    """What became of the messages."""
    about = "Log lines that stderr did not take."
    metrics.counter("musicsvc_log_lines_dropped", about, lambda: writer.dropped)


def of_store(metrics: Metrics, store: Store) -> None:
    """What waits for the store, what it has committed, and what it takes on disk."""
    done = store.workload
    metrics.gauge("musicsvc_store_reads_waiting", "Units that wait for a reader.", lambda: store.waiting()[0])
    metrics.gauge("musicsvc_store_writes_waiting", "Units that wait for the writer.", lambda: store.waiting()[1])
    metrics.counter("musicsvc_store_commits", "Transactions committed.", lambda: done.commits)
    metrics.counter("musicsvc_store_units", "Units of work in committed transactions.", lambda: done.units)
    metrics.counter("musicsvc_store_commit_seconds", "Time spent in commits.", lambda: done.seconds)
    metrics.once("musicsvc_database_bytes", "Size of the database file.", lambda: database_bytes(store.url))
    metrics.once("musicsvc_wal_bytes", "Size of its write-ahead log.", lambda: wal_bytes(store.url))
