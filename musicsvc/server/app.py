"""Wiring: settings, store and clock become a server that listens."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from musicsvc.errors import Failure
from musicsvc.server import openapi
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.access.rate_limit_counter import RateLimitCounter
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.jobs.abuse_monitor import AbuseMonitor
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.server.logs import access_log
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network.acceptor import Door
from musicsvc.server.network.connection_limits import Places
from musicsvc.server.network.http_server import JsonServer
from musicsvc.server.process import open_files
from musicsvc.server.request.dispatch import Dispatcher
from musicsvc.server.request.executors import Executors
from musicsvc.server.responses.pictures import PictureCache
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.activity import log as activity_log

if TYPE_CHECKING:
    import socket
    import ssl

    from musicsvc.clock import Clock
    from musicsvc.config import Settings
    from musicsvc.server.call import Observer
    from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
BATCH_SECONDS = 1.0


class Chore(Protocol):
    """Something that is done every second."""

    async def __call__(self, *, last: bool) -> None:
        """Do it; `last`: there is no next time."""


class App:
    """One process of the service; `start` and `stop` run on its event loop."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, root: str, metrics: Metrics | None = None
    ) -> None:
        """`root`: the address that absolute URLs begin with; `metrics`: its own where none is given."""
        self._settings = settings
        self._store = store
        self._executors = Executors()
        counter = RateLimitCounter(store.url, clock)
        self._authenticator = Authenticator(store, clock, settings, RateLimiter(settings.limits, counter))
        self._metrics = metrics or Metrics()
        # Where the log of calls is kept, for whoever reads it too.
        self._calls = activity_log.build(store.url, settings.activity.file)
        self._activity_writer = ActivityWriter(
            self._calls, store, clock, settings.activity.keep_days, settings.server.workers
        )
        self._abuse_monitor = AbuseMonitor(
            settings, store, self._calls, self._activity_writer, self._authenticator, clock
        )
        observers: list[Observer] = [self._metrics, self._activity_writer, self._abuse_monitor]
        if settings.log.requests:
            observers.append(access_log.write)
        self._dispatcher = Dispatcher(
            settings, store, clock, self._authenticator, self._executors, observers, self._sources(root)
        )
        # Done every second, off the path of any request, and a last time at the end; each has a name for the log.
        self._chores: list[tuple[str, Chore]] = [
            ("writing last uses of tokens", self._authenticator.write_last_used),
            ("keeping the counts of limits", counter.maintain),
            ("keeping room for revocations", self._keep_room),
            ("reading figures", self._metrics.refresh),
        ]
        self._server: JsonServer | None = None
        self._door: Door | None = None
        collectors.of_connections(self._metrics, lambda: self._server, lambda: self._door)
        collectors.of_store(self._metrics, store)
        collectors.of_answers(self._metrics, self._dispatcher.answer_memory)
        collectors.of_calls(self._metrics, self._activity_writer, self._abuse_monitor)
        self._batches: asyncio.Task[None] | None = None
        self._failing: set[str] = set()

    def _sources(self, root: str) -> dict[str, Any]:
        """Return the arguments that handlers may take by name, the same for every request."""
        return {
            "site": Site(root),
            "pictures": PictureCache(),
            "read_metrics": self._metrics.text,
            "openapi_document": partial(openapi.encoded_document, root),
        }

    def add_chore(self, name: str, chore: Chore) -> None:
        """Have something more done every second."""
        self._chores.append((name, chore))

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Answer on a socket that listens."""
        server = self._settings.server
        most = min(-(-server.max_connections // server.workers), open_files.for_connections())
        places = Places(most, server.max_connections_per_address, server.trusted_proxies)
        self._server = JsonServer(self._dispatcher, server, places)
        self._door = Door(listener, self._server, places, tls, server.handshake_timeout)
        self._door.open()
        self._activity_writer.start()
        self._abuse_monitor.start()
        self._batches = asyncio.create_task(self._do_chores_for_ever())

    async def stop(self) -> None:
        """Close the listener, finish requests in flight, write what is batched."""
        if self._door is not None and self._server is not None:
            await self._door.close()
            await self._server.finish(self._settings.server.shutdown_timeout)
        if self._batches is not None:
            self._batches.cancel()
            with suppress(asyncio.CancelledError):
                await self._batches
            await self._do_chores(last=True)
        await self._abuse_monitor.stop()
        await self._activity_writer.stop()
        self._executors.close()

    async def _keep_room(self, *, last: bool) -> None:
        if not last and (wanting := await asyncio.to_thread(self._store.keep_room)):
            raise Failure(wanting)

    async def _do_chores_for_ever(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            await self._do_chores(last=False)

    async def _do_chores(self, *, last: bool) -> None:
        for name, chore in self._chores:
            try:
                await chore(last=last)
            except Failure as failure:
                # Told once: a disk may be full for days.
                if name not in self._failing:
                    log.warning("%s: %s", name, failure.here)
                self._failing.add(name)
            except Exception:
                log.exception("%s failed", name)
            else:
                if name in self._failing and not last:  # some have nothing to do at the end
                    log.info("%s: works again", name)
                self._failing.discard(name)
