"""The server of one process, which can be replaced while it runs by one with new settings.

Both share the listening socket: the old server finishes its connections while the new one accepts all others.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.networks import root_url
from musicsvc.server.app import App
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.logs.writer import LogWriter
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network import tls
from musicsvc.server.process import malloc
from musicsvc.store import opening
from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
FIXED = ("host", "port", "workers")  # of the section `server`; a restart is needed to change them
RELOADED = "reloaded the settings"
REFUSED = "could not reload the settings, the old ones still apply"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Valid settings, with the TLS context made from their certificate."""

    settings: Settings
    tls: ssl.SSLContext | None

    def root(self, listener: socket.socket) -> str:
        """Return the service's root URL, with the port of the listener. It never depends on the Host header."""
        return root_url(self.settings.server, listener.getsockname()[1])


def configure(settings: Settings) -> Configuration:
    """Load the certificate. Raises Failure if it is unusable, or if tokens would be sent over plain HTTP."""
    context = tls.create_context(settings.server)
    tls.require_encryption(settings.server)
    return Configuration(settings, context)


class Source:
    """The settings and the TLS context of a running server, which can be loaded again."""

    def __init__(self, settings: Settings, load: Callable[[], Settings]) -> None:
        """`load`: reads the settings again.

        Raises Failure if the certificate is unusable, or if tokens would be sent over plain HTTP.
        """
        self.current = configure(settings)
        self._load = load

    def reload(self, *, announce: bool) -> bool:
        """Read the settings and the certificate again. Return False, with a line in the log, if they are invalid.

        Settings that need a restart keep their values. `announce`: log which of these settings have changed.
        """
        running = self.current.settings
        try:
            found = self._load()
            if announce and (changed := _needing_restart(running, found)):
                log.warning("a restart is needed to change %s; until then the old value applies", ", ".join(changed))
            kept = {name: getattr(running.server, name) for name in FIXED}
            server = found.server.model_copy(update=kept)
            self.current = configure(found.model_copy(update={"server": server, "database_url": running.store_url}))
        except Failure as failure:
            log.error("%s: %s", REFUSED, failure.here)  # noqa: TRY400 - a line, no trace
            return False
        except Exception:  # it would end the supervisor
            log.exception(REFUSED)
            return False
        return True


def _needing_restart(running: Settings, found: Settings) -> list[str]:
    changed = [f"server.{name}" for name in FIXED if getattr(found.server, name) != getattr(running.server, name)]
    return [*changed, *["database_url"] * (found.store_url != running.store_url)]


@dataclass(slots=True)
class Generation:
    """A server with its store. Reloading the settings replaces it with a new generation."""

    app: App
    store: Store

    async def stop(self) -> None:
        await self.app.stop()
        self.store.close()


class ReloadableServer:
    """The server of one process. Call all methods on the same event loop."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        listener: socket.socket,
        metrics: Metrics,
        log_writer: LogWriter,
        *,
        announce: bool,
    ) -> None:
        """`announce`: log reloads. False in worker processes, because the supervisor logs them once for all."""
        self._source = source
        self._clock = clock
        self._listener = listener
        self._metrics = metrics
        self._log_writer = log_writer
        self._announce = announce
        self._requested = asyncio.Event()
        self._stopping = asyncio.Event()
        self._retiring: set[asyncio.Task[None]] = set()
        self._running: Generation | None = None
        self._reloads: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = await self._start()
        malloc.freeze_objects(collect=False)
        self._reloads = asyncio.create_task(self._reload_on_request())

    def request_reload(self) -> None:
        """Reload the settings soon. If they are invalid, the server continues with the old ones."""
        self._requested.set()

    async def stop(self) -> None:
        """Close the listener, finish the requests in progress and stop."""
        self._stopping.set()
        self._requested.set()
        if self._reloads is not None:
            await self._reloads
        self._listener.close()
        if self._running is not None:
            await asyncio.gather(self._running.stop(), *self._retiring)

    async def _start(self) -> Generation:
        configuration = self._source.current
        settings = configuration.settings
        store = await asyncio.to_thread(opening.connect, settings.store_url)
        try:
            collectors.add_backups(self._metrics, settings, self._clock)
            collectors.add_installation(self._metrics, settings)
            app = App(settings, store, self._clock, configuration.root(self._listener), self._metrics)
            if backups := backup_scheduler.build(settings, self._clock):
                app.add_job(backups)
            await app.start(self._listener.dup(), configuration.tls)
        except BaseException:
            store.close()
            raise
        return Generation(app, store)

    async def _reload_on_request(self) -> None:
        while True:
            await self._requested.wait()
            self._requested.clear()
            if self._stopping.is_set():
                return
            running = self._source.current
            try:
                await self._reload()
            except Exception as error:
                self._source.current = running
                if isinstance(error, Failure):
                    log.error("%s: %s", REFUSED, error.here)  # noqa: TRY400 - a line, no trace
                else:
                    log.exception(REFUSED)

    async def _reload(self) -> None:
        if not await asyncio.to_thread(self._source.reload, announce=self._announce):
            return
        old, self._running = self._running, await self._start()
        log_setup.change(self._log_writer, self._source.current.settings.log)
        if old is not None:
            task = asyncio.create_task(self._retire(old))
            self._retiring.add(task)
            task.add_done_callback(self._retired)
        if self._announce:
            log.info(RELOADED)

    async def _retire(self, old: Generation) -> None:
        """Stop the old server when its connections have ended, or when this server stops."""
        drained = asyncio.create_task(old.app.drain())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({drained, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (drained, stopping):
            task.cancel()
        await old.stop()

    def _retired(self, task: asyncio.Task[None]) -> None:
        """Free the memory of the old server, now that nothing refers to it."""
        self._retiring.discard(task)
        if not self._stopping.is_set():
            malloc.freeze_objects(collect=True)
            asyncio.get_running_loop().run_in_executor(None, malloc.return_freed_memory)
