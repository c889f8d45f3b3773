"""The server of one process, built from the settings, the store and the clock."""

import asyncio
import socket
import ssl
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from musicsvc import scratch
from musicsvc.clock import SECOND, Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server import doctor
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.access.rate_limits import RateLimitCounter, RateLimiter
from musicsvc.server.call import Observer
from musicsvc.server.demo.stages import Demo, cross_origin
from musicsvc.server.demo.state import DemoState
from musicsvc.server.freshness import Freshness
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.jobs.abuse_monitor import AbuseMonitor
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.server.jobs.import_worker import ImportWorker
from musicsvc.server.jobs.listen_resolver import ListenResolver
from musicsvc.server.jobs.periodic import Periodic
from musicsvc.server.logs.setup import log_request
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network.acceptor import Acceptor
from musicsvc.server.network.connection_limits import ConnectionSlots
from musicsvc.server.network.http_server import HttpServer
from musicsvc.server.openapi import document, listing, tools
from musicsvc.server.pages.html import HTML_TYPE
from musicsvc.server.peer import CrossOrigin
from musicsvc.server.process import resources
from musicsvc.server.request.dispatch import Dispatcher
from musicsvc.server.request.executors import Executors
from musicsvc.server.responses.drawer import Drawer
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.table import DOCUMENTED, ROUTES
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.abuse import replay
from musicsvc.store.accounts import kept_answers
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.sql import release_page_cache
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks.uploads import Place

JOB_SECONDS, TRIM_SECONDS = 1.0, 30.0
CLEANING_SECONDS = 600.0
REPORTS_CAPACITY = 8 * 1024 * 1024  # bytes of shared reports that are kept
REPORTS_LIFETIME = 5 * SECOND


class Job(Protocol):
    def start(self) -> None:
        """Start the job on the running event loop."""

    async def stop(self) -> None:
        """Finish the work in progress and stop the job."""


class App:
    """The server of one process. Call `start` and `stop` on the same event loop."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        root: str,
        metrics: Metrics | None = None,
        demo: DemoState | None = None,
        *,
        observed: bool = True,
    ) -> None:
        """`root`: the service's root URL, used in absolute URLs. `metrics`: by default, a new empty set.

        `demo`: the state of the demo, in demo mode only. `observed`: whether log and metrics get its requests.
        """
        self._settings = settings
        self._store, self._clock = store, clock
        self.executors = Executors()
        self._drawer = Drawer(clock)
        self._pictures, self._reports = Drawings(), Drawings(REPORTS_CAPACITY, HTML_TYPE, REPORTS_LIFETIME)
        limit_clock = clock if demo is None else demo.limit_clock
        self.counter = RateLimitCounter(store, limit_clock, settings.server.workers)
        self._freshness = Freshness(store)
        limiter = RateLimiter(settings.limits, self.counter)
        self.authenticator = Authenticator(store, clock, settings, limiter, self._freshness)
        self._metrics = metrics or Metrics()
        direct_url = settings.database_direct_url
        log = activity_log.build(store.url, settings.activity.file, beside=store, direct_url=direct_url)
        self._return_free_memory = partial(return_free_memory, store, log)
        self._activity_writer = ActivityWriter(log, store, clock, settings.activity.keep_days, settings.server.workers)
        self._abuse_monitor = AbuseMonitor(settings, store, log, self._activity_writer, self.authenticator, clock)
        self._demo = demo
        self.dispatcher = self._build_dispatcher(clock, root, log, observed=observed)
        self._import_worker = ImportWorker(store, self._uploads, clock)
        self._long_jobs: list[Job] = [self._import_worker]
        self._jobs = self._build_jobs()
        self._server: HttpServer | None = None
        self._acceptor: Acceptor | None = None
        self._stopping = False
        self._add_metrics()

    def _build_dispatcher(self, clock: Clock, root: str, log: Log, *, observed: bool) -> Dispatcher:
        settings, store, authenticator, demo = self._settings, self._store, self.authenticator, self._demo
        observers: list[Observer] = [self._metrics, self._activity_writer, self._abuse_monitor] if observed else []
        if settings.log.requests and observed:
            observers.append(log_request)
        dispatcher = Dispatcher(
            settings,
            store,
            clock,
            authenticator,
            self._freshness,
            self.executors,
            observers,
            self._sources(root, log),
            routes=ROUTES if demo is None else DEMO_ROUTES,
            cross_origin=CrossOrigin(settings.server.cors_origins) if demo is None else cross_origin(settings),
        )
        if demo is not None:
            added = Demo(dispatcher.stages, demo, settings, store, clock, authenticator, root)
            dispatcher.stages = added.around()
        return dispatcher

    def _build_jobs(self) -> list[Job]:
        last_used, refresh, counter = self.authenticator.write_last_used, self._metrics.refresh, self.counter
        listens = ListenResolver(self._store, self._clock, self._freshness, lambda: self._stopping)
        # In the order in which the jobs stop: the abuse monitor needs the activity log.
        return [
            Periodic("writing last uses of tokens", last_used, every=JOB_SECONDS, finish=partial(last_used, last=True)),
            Periodic("maintaining the rate limit counts", counter.maintain, every=JOB_SECONDS, finish=counter.close),
            Periodic("checking the place of the database", self._freshness.check, every=JOB_SECONDS),
            Periodic("looking for changes by other programs", self._freshness.check_others, every=JOB_SECONDS),
            Periodic("ending processes that draw nothing", self._drawer.end_idle, every=JOB_SECONDS),
            Periodic("returning free memory", self._return_free_memory, every=TRIM_SECONDS),
            Periodic("reserving disk space for revocations", self._reserve_space, every=JOB_SECONDS),
            Periodic("counting pending listens", listens.resolve, every=JOB_SECONDS),
            Periodic("deleting old listens", listens.clean, every=CLEANING_SECONDS),
            Periodic("deleting responses kept for a day", self._clean_answers, every=CLEANING_SECONDS),
            Periodic("reading metrics from the database", refresh, every=JOB_SECONDS, finish=refresh),
            self._abuse_monitor,
            self._activity_writer,
        ]

    def _add_metrics(self) -> None:
        metrics, dispatcher = self._metrics, self.dispatcher
        collectors.add_connections(metrics, lambda: self._server, lambda: self._acceptor)
        collectors.add_store(metrics, self._store)
        collectors.add_replica(metrics, self._store.replica)
        collectors.add_answers(metrics, dispatcher.answer_memory, dispatcher.answer_cache, dispatcher.first_steps)
        collectors.add_caches(metrics, self.authenticator, self._pictures, self._reports)
        collectors.add_activity(metrics, self._activity_writer, self._abuse_monitor)

    def _sources(self, root: str, log: Log) -> dict[str, Any]:
        """Map names of handler parameters, such as `site`, to values that are the same for all requests."""
        settings = self._settings.model_copy(update={"database_url": self._store.url})  # the one that is open
        self._temporary = settings.temporary_folder
        self._uploads = Place.build(self._temporary, self._store.url)
        keep_days = settings.activity.keep_days
        return {
            "store": self._store,  # for handlers that run outside of a transaction
            "activity_log": log,
            "check_installation": partial(
                doctor.check, settings, settings.data_dir / "config.toml", beside=self._store
            ),
            "backup_folder": settings.backup_folder,
            "create_backup": partial(backup_scheduler.create_now, self._store.url, settings.backup_folder),
            "temporary": self._temporary,
            "uploads": self._uploads,
            "replay_token": partial(replay.replay_token, self._store, log, settings.abuse, keep_days=keep_days),
            "site": Site(root),
            "drawer": self._drawer,
            "pictures": self._pictures,
            "drawn_reports": self._reports,
            "is_stopping": lambda: self._stopping,
            "read_metrics": self._metrics.text,
            "tools": tools.tools,
            "llms_text": partial(listing.llms, root),
            "openapi_document": partial(document.encoded_document, root, demo=self._demo is not None),
            **({} if self._demo is None else self._demo.sources | {"documented": DOCUMENTED}),
        }

    def add_job(self, job: Job) -> None:
        """Add a background job whose work may take long. Call before `start`."""
        self._long_jobs.append(job)

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        server = self._settings.server
        capacity = min(-(-server.max_connections // server.workers), resources.max_connections())
        slots = ConnectionSlots(capacity, server.max_connections_per_address, server.trusted_proxies)
        self._server = HttpServer(self.dispatcher, server, slots)
        # Left by a process that was killed while it wrote exports.
        await asyncio.to_thread(scratch.remove_leftovers, self._temporary)
        self._acceptor = Acceptor(listener, self._server, slots, tls, server.handshake_timeout)
        if self._demo is not None:
            self._demo.attach(asyncio.get_running_loop(), self.advanced, self.restored)
        self._acceptor.open()
        for job in (*self._jobs, *self._long_jobs):
            job.start()

    async def advanced(self) -> None:
        """Begin the work that is due by the new time of a demo."""
        self._activity_writer.prune_soon()
        self._import_worker.settle_soon()

    async def restored(self, now: int) -> None:
        """Forget what is not of the restored database of a demo, and what was counted and logged after its time."""
        self._freshness.now()  # notices the change before the next one
        self.authenticator.forget()
        self.counter.forget()
        self.dispatcher.answer_cache.clear()
        self._reports.clear()
        await self._activity_writer.forget_after(now)

    def stop_accepting(self) -> None:
        if self._acceptor is not None:
            self._acceptor.stop_accepting()

    async def drain(self) -> None:
        """Accept no more connections, and wait until the open ones have ended, each after its next response.

        Then wait for the import that runs.
        """
        if self._acceptor is not None and self._server is not None:
            await self._acceptor.drain()
            await self._server.drain()
        await self._import_worker.drain()

    async def announce_stop(self) -> None:
        """Go on for `server.shutdown_delay`, with `/readyz` at 503, so that proxies send requests elsewhere first."""
        self._stopping = True
        if self._server is not None and self._settings.server.shutdown_delay:
            self._server.finish_next()
            await asyncio.sleep(self._settings.server.shutdown_delay)

    async def stop(self) -> None:
        """Close the listener, finish the requests in progress and stop the background jobs.

        Those that may be in the middle of long work stop meanwhile, so that nobody waits for it to write the logs.
        """
        stopping = [asyncio.create_task(job.stop()) for job in self._long_jobs]
        if self._acceptor is not None and self._server is not None:
            await self._acceptor.close()
            await self._server.finish(self._settings.server.shutdown_timeout)
        for job in self._jobs:
            await job.stop()
        await asyncio.gather(*stopping)
        await asyncio.to_thread(self.end_work)
        if self._demo is not None:
            self._demo.end_card()

    def end_work(self) -> None:
        """Wait for the slow work that runs, and end the processes that draw. Call it on a thread."""
        self.executors.close()
        self._drawer.close()

    async def _clean_answers(self) -> None:
        work = partial(kept_answers.clean, self._clock.now())
        await asyncio.wrap_future(self._store.write(work, counters_only=True))

    async def _reserve_space(self) -> None:
        if missing := await asyncio.to_thread(self._store.reserve_space):
            raise Failure(missing)


async def return_free_memory(*stores: Store) -> None:
    """Return to the system what the page caches of SQLite's writers hold, and what malloc keeps free.

    The caches fill again from the system's own. Readers have nearly nothing there: they map the file.
    """
    for store in stores:
        with suppress(Failure):  # the disk is full, or the store is not open
            await store.write_on_loop(release_page_cache, counters_only=True)
    await resources.return_free_memory()
