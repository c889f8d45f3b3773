"""A worker process: it serves requests until it is stopped, or until another one with new settings takes its place."""

import asyncio
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server.app import App
from musicsvc.server.demo.state import DemoState
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.multiprocess import SharedMetrics
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network.tls import Configuration
from musicsvc.server.process import resources
from musicsvc.server.process.supervisor import ALIVE, PING, READY, RETIRE, RETIRING, SERVING, SIGNALS
from musicsvc.store import opening
from musicsvc.store.engine.store import Store


def check(settings: Settings) -> None:
    """Open the database. Raises Failure if that is impossible."""
    opening.connect(settings.store_url).close()


def serve(
    configuration: Configuration,
    clock: Clock,
    listener: socket.socket,
    shared: SharedMetrics | None,
    supervisor: socket.socket,
    demo: DemoState | None,
) -> None:
    """Serve requests until the supervisor or a signal stops the process."""
    metrics = Metrics(shared)
    with log_setup.started(configuration.settings.log, clock, threaded=True) as writer:
        collectors.add_logs(metrics, writer)
        Worker(configuration, clock, listener, metrics, supervisor, demo).run()


@dataclass
class Worker:
    """Serves requests. `supervisor`: the connection to it. `demo`: the state of the demo, in demo mode only."""

    configuration: Configuration
    clock: Clock
    listener: socket.socket
    metrics: Metrics
    supervisor: socket.socket
    demo: DemoState | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _retiring: asyncio.Event = field(default_factory=asyncio.Event)

    def run(self) -> None:
        """Serve requests, on uvloop if it is installed, until the supervisor or a signal stops the process."""
        runner = asyncio.run
        with suppress(ImportError):
            import uvloop  # noqa: PLC0415 - not available on every platform

            runner = uvloop.run
        runner(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopping.set)
        loop.add_reader(self.supervisor, self._heed)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        settings = self.configuration.settings
        connections, read_url = settings.database.connections, settings.database_read_url
        connect = partial(opening.connect, settings.store_url, connections=connections, read_url=read_url)
        with await asyncio.to_thread(connect) as store:
            app = self._build(store)
            self._tell(READY)
            await app.start(self.listener.dup(), self.configuration.tls)
            self._tell(SERVING)
            resources.freeze_objects()
            await _first(self._stopping.wait(), self._retiring.wait())
            self.listener.close()
            if self._stopping.is_set():
                await app.announce_stop()
                await app.stop()
            else:
                app.stop_accepting()
                self._tell(RETIRING)
                await _first(self._stopping.wait(), app.drain())
                await app.stop()

    def _tell(self, message: bytes) -> None:
        with suppress(OSError):  # the supervisor is gone, which stops the worker
            self.supervisor.send(message)

    def _heed(self) -> None:
        """Read a message of the supervisor, or the end of the connection, which stops the worker."""
        message = b""
        with suppress(OSError):
            message = self.supervisor.recv(1)
        if message == RETIRE:
            self._retiring.set()
        elif message == PING:
            self._tell(ALIVE)
        else:
            asyncio.get_running_loop().remove_reader(self.supervisor)
            self._stopping.set()

    def _build(self, store: Store) -> App:
        settings = self.configuration.settings
        collectors.add_backups(self.metrics, settings, self.clock)
        collectors.add_installation(self.metrics, settings, self.configuration.validities)
        root = self.configuration.root(self.listener)
        app = App(settings, store, self.clock, root, self.metrics, self.demo)
        if backups := backup_scheduler.build(settings, self.clock):
            app.add_job(backups)
        return app


async def _first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of the coroutines returns, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
