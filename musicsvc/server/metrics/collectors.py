"""Metrics of connections, the installation, the activity log, unsent responses, backups, log lines and the store."""

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from math import isfinite

from musicsvc.clock import SECOND, Clock
from musicsvc.config import Settings
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.jobs.abuse_monitor import AbuseMonitor
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.server.logs.writer import LineWriter
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network.acceptor import Acceptor
from musicsvc.server.network.http_server import HttpServer
from musicsvc.server.network.protocol import HttpConnection
from musicsvc.server.network.tls import Validity
from musicsvc.server.request.first_steps import FirstSteps
from musicsvc.server.responses.answer_cache import AnswerCache
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.responses.large import AnswerMemory
from musicsvc.store.backups.folder import BackupFile, known_damaged, newest
from musicsvc.store.engine.sqlite.files import database_bytes, wal_bytes
from musicsvc.store.engine.store import ConnectionUse, Replica, Store
from musicsvc.store.engine.url import path_of


def add_connections(
    metrics: Metrics, server: Callable[[], HttpServer | None], acceptor: Callable[[], Acceptor | None]
) -> None:
    """Add metrics of connections and requests. `server` and `acceptor` return None before the process listens."""

    def connections() -> int:
        running = server()
        return len(running.connections) if running is not None else 0

    def in_flight() -> int:
        running = server()
        found = running.connections if running is not None else []
        return sum(connection.in_flight for connection in found if isinstance(connection, HttpConnection))

    def rejected() -> int:
        accepting = acceptor()
        return accepting.rejected if accepting is not None else 0

    metrics.gauge("musicsvc_connections", "Open connections.", connections)
    metrics.counter("musicsvc_connections_refused", "Connections rejected because no slot was free.", rejected)
    metrics.gauge("musicsvc_requests_in_flight", "Requests received and not answered yet.", in_flight)


def add_activity(metrics: Metrics, activity: ActivityWriter, monitor: AbuseMonitor) -> None:
    """Add metrics of the calls in the activity log and of the tokens revoked for abuse."""
    metrics.counter("musicsvc_activity_written", "Calls written to the activity log.", lambda: activity.written)
    text = "Calls that the activity log has only as totals by minute, address and status."
    metrics.counter("musicsvc_activity_counted", text, lambda: activity.counted)
    metrics.counter("musicsvc_activity_dropped", "Calls that the activity log has lost.", lambda: activity.dropped)
    metrics.gauge("musicsvc_activity_waiting", "Calls not yet written to the activity log.", lambda: activity.waiting)
    metrics.counter("musicsvc_tokens_revoked", "Tokens revoked for abuse.", lambda: monitor.revoked)


def add_answers(metrics: Metrics, memory: AnswerMemory, cache: AnswerCache, first_steps: FirstSteps) -> None:
    """Add metrics of the memory of large unsent responses, the response cache, and responses sent from memory."""
    text = "Memory of responses of 64 KiB and more that are not sent yet."
    metrics.gauge("musicsvc_answer_memory_bytes", text, lambda: memory.total)
    text = "Memory of the response cache."
    metrics.gauge("musicsvc_answer_cache_bytes", text, lambda: cache.size + cache.fragments.size)
    metrics.counter("musicsvc_answer_cache_hits", "Reads answered from the response cache.", lambda: cache.hits)
    metrics.counter("musicsvc_answer_cache_misses", "Reads that were not in the response cache.", lambda: cache.misses)
    text = "Requests answered from memory without an asyncio task."
    metrics.counter("musicsvc_immediate_answers", text, lambda: first_steps.answered)
    text = "Memory of the rows of pages, which is a part of that of the response cache."
    metrics.gauge("musicsvc_row_cache_bytes", text, lambda: cache.fragments.size)
    text = "Approximate memory of parsed heads of requests."
    metrics.gauge("musicsvc_head_cache_bytes", text, lambda: first_steps.size)


def add_caches(metrics: Metrics, authenticator: Authenticator, pictures: Drawings, reports: Drawings) -> None:
    metrics.gauge("musicsvc_token_cache_bytes", "Approximate memory of cached tokens.", lambda: authenticator.size)
    metrics.gauge("musicsvc_picture_cache_bytes", "Memory of drawn pictures.", lambda: pictures.size)
    metrics.gauge("musicsvc_report_cache_bytes", "Memory of shared reports.", lambda: reports.size)


def add_backups(metrics: Metrics, settings: Settings, clock: Clock) -> None:
    """Add metrics of the age and size of the last good backup, unless the database is PostgreSQL."""
    if path_of(settings.store_url) is None:
        return

    def last() -> BackupFile | None:
        folder = settings.backup_folder
        return newest(folder, clock.now(), damaged=known_damaged(folder))

    def age() -> float | None:
        found = last()
        return None if found is None else (clock.now() - found.at) / SECOND

    def size() -> float | None:
        found = last()
        return None if found is None else found.file.stat().st_size

    metrics.on_scrape("musicsvc_backup_age_seconds", "Time since the last good backup.", age)
    metrics.on_scrape("musicsvc_backup_bytes", "Size of the last good backup.", size)


def add_installation(metrics: Metrics, settings: Settings, validities: Iterable[Validity] = ()) -> None:
    """Add metrics of the end of the certificate in use, and of the free space on the disk of the data folder."""
    ends = min((validity.ends for validity in validities), default=None)
    text = "Time at which the TLS certificate, or an earlier one of its chain, expires, in seconds since 1970."
    metrics.on_scrape("musicsvc_tls_certificate_not_after_timestamp_seconds", text, lambda: ends and ends / SECOND)
    path = path_of(settings.store_url)
    folder = settings.data_dir if path is None else path.parent
    text = "Free space on the disk of the database or, with PostgreSQL, of the data folder."
    metrics.on_scrape("musicsvc_data_disk_free_bytes", text, lambda: shutil.disk_usage(folder).free)


def add_logs(metrics: Metrics, writer: LineWriter) -> None:
    text = "Log lines that could not be written to stderr."
    metrics.counter("musicsvc_log_lines_dropped", text, lambda: writer.dropped)


def add_store(metrics: Metrics, store: Store) -> None:
    """Add metrics of the store's queues and commits, and of the size of the database on disk."""
    done = store.workload
    metrics.gauge("musicsvc_store_reads_waiting", "Units of work waiting for a reader.", lambda: store.waiting()[0])
    metrics.gauge("musicsvc_store_writes_waiting", "Units of work waiting for the writer.", lambda: store.waiting()[1])
    metrics.counter("musicsvc_store_commits", "Transactions committed.", lambda: done.commits)
    metrics.counter("musicsvc_store_units", "Units of work in committed transactions.", lambda: done.units)
    metrics.counter("musicsvc_store_commit_seconds", "Time spent in commits.", lambda: done.seconds)
    metrics.on_scrape("musicsvc_database_bytes", "Size of the database file.", lambda: database_bytes(store.url))
    metrics.on_scrape("musicsvc_wal_bytes", "Size of the write-ahead log.", lambda: wal_bytes(store.url))
    if (use := store.connections) is not None:
        _add_database_connections(metrics, use)


def _add_database_connections(metrics: Metrics, use: ConnectionUse) -> None:
    metrics.gauge("musicsvc_database_connections", "Open connections to PostgreSQL.", lambda: use.open)
    metrics.gauge(
        "musicsvc_database_connections_in_use",
        "Connections to PostgreSQL that a unit of work uses.",
        lambda: use.in_use,
    )
    metrics.gauge(
        "musicsvc_database_connections_budget", "The maximum number of connections to PostgreSQL.", lambda: use.budget
    )
    text = "Units of work that waited for a connection to PostgreSQL."
    metrics.counter("musicsvc_database_connection_waits", text, lambda: use.waits)
    text = "Time that units of work waited for a connection to PostgreSQL."
    metrics.counter("musicsvc_database_connection_wait_seconds", text, lambda: use.wait_seconds)


def add_replica(metrics: Metrics, replica: Replica | None) -> None:
    """Add metrics of the read replica, if there is one: its lag, and which reads it and the primary answered."""
    if replica is None:
        return
    text = "Time since the last moment until which the read replica is known to have every commit."
    metrics.on_scrape("musicsvc_replica_lag_seconds", text, lambda: replica.lag if isfinite(replica.lag) else None)
    metrics.counter("musicsvc_replica_reads", "Figures and exports from the read replica.", lambda: replica.reads)
    text = "Figures and exports from the primary, although there is a read replica."
    reads = {reason: partial(replica.fallbacks.__getitem__, reason) for reason in replica.fallbacks}
    metrics.counter_by("musicsvc_replica_fallbacks", text, "reason", reads)
