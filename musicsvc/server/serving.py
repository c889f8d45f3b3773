"""The `serve` command: run the server in one or several processes until a signal stops it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack, suppress
from math import inf
from typing import TYPE_CHECKING, Any

from musicsvc.errors import Failure
from musicsvc.server.app import App
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.multiprocess import SharedMetrics
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network import tls
from musicsvc.server.process import malloc, open_files
from musicsvc.server.process.signals import EarlySignal
from musicsvc.server.process.supervisor import Supervisor
from musicsvc.store import opening

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from musicsvc.clock import Clock
    from musicsvc.config import Settings

ECHO_SECONDS = 0.2
EXIT_SECONDS = 0.3  # the longest time from the second signal until the process exits
BACKLOG = 1024
# Size in bytes of the system's buffers for a connection; by default they grow to megabytes for a slow client.
SEND_BUFFER = 128 * 1024
RECEIVE_BUFFER = 64 * 1024


def serve(settings: Settings, clock: Clock, ready: Callable[[str], None]) -> None:
    """Serve requests until SIGTERM or SIGINT. `ready` is called with the root URL once the server listens.

    Raises Failure if the address cannot be used, or if tokens would be sent over plain HTTP.
    """
    open_files.raise_limit()
    malloc.return_large_blocks()
    context = tls.create_context(settings.server)
    _resolved(settings.server.host, settings.server.port)
    tls.require_encryption(settings.server)
    opening.connect(settings.store_url).close()
    listener = listen(settings.server.host, settings.server.port)
    root = root_of(settings, listener, tls=context is not None)
    early = EarlySignal()
    ready(root)

    def work(metrics: Metrics, parent_pipe: int | None = None) -> None:
        with log_setup.started(settings.log, clock, threaded=True) as writer:
            collectors.add_logs(metrics, writer)
            end = early if parent_pipe is None else parent_pipe
            _run(_work(settings, clock, root, listener, context, end, metrics))

    if settings.server.workers == 1:
        work(Metrics())
        return
    with log_setup.started(settings.log, clock, threaded=False):
        _supervise(work, settings.server.workers, listener, early)


def _supervise(work: Callable[[Metrics, int], None], workers: int, listener: socket.socket, early: EarlySignal) -> None:
    """Run `work(metrics, pipe)` in each worker process. `pipe` is a descriptor that closes when the parent exits."""
    with SharedMetrics.create(workers) as shared:

        def join(worker: int, parent_pipe: int) -> None:
            work(Metrics(shared and shared.join(worker)), parent_pipe)

        on_exit = shared.worker_exited if shared is not None else None
        Supervisor(join, workers, listener, on_exit).run(early)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises Failure if the port is taken or the address is not this machine's."""
    with ExitStack() as undo:
        try:
            family, kind, protocol, address = _resolved(host, port)
            listener = undo.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            if (option := getattr(socket, "TCP_NOTSENT_LOWAT", None)) is not None:
                listener.setsockopt(socket.IPPROTO_TCP, option, SEND_BUFFER)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Failure(f"Port {port} of {host} is taken. Choose another one with --port.") from None
            raise Failure(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
        undo.pop_all()
    listener.setblocking(False)  # noqa: FBT003 - the library's signature
    return listener


def _resolved(host: str, port: int) -> tuple[int, int, int, Any]:
    """Resolve the host. Return the family, type, protocol and address for a socket. Raises Failure if it is unknown."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise Failure(f"{host} is not a valid host name or address of this machine: {error.strerror}.") from None
    except UnicodeError:
        raise Failure(f"{host} is not a valid host name or address of this machine.") from None
    return family, kind, protocol, address


def root_of(settings: Settings, listener: socket.socket, *, tls: bool) -> str:
    """Return the service's root URL: `server.public_url` or else the listening address, never the Host header."""
    if settings.server.public_url is not None:
        return settings.server.public_url
    host = f"[{settings.server.host}]" if ":" in settings.server.host else settings.server.host
    return f"{'https' if tls else 'http'}://{host}:{listener.getsockname()[1]}"


async def _work(
    settings: Settings,
    clock: Clock,
    root: str,
    listener: socket.socket,
    context: ssl.SSLContext | None,
    end: EarlySignal | int,
    metrics: Metrics,
) -> None:
    """Serve until a stop signal arrives. In a worker process, serve until the supervisor closes the pipe `end`."""
    store = opening.connect(settings.store_url)
    collectors.add_backups(metrics, settings, clock)
    app = App(settings, store, clock, root, metrics)
    if backups := backup_scheduler.build(settings, clock):
        app.add_job(backups)
    stopped = _stop_event(end)
    await app.start(listener, context)
    malloc.freeze_startup_objects()
    await stopped.wait()
    await app.stop()
    store.close()


def _stop_event(end: EarlySignal | int) -> asyncio.Event:
    """Return an event that is set when the server must stop. A second stop signal ends the server at once."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    # uvloop delivers a signal once more if it arrived while the loop ran without a handler for it.
    echo_until = -inf

    def stop() -> None:
        if stopped.is_set() and task is not None:
            if loop.time() < echo_until:
                return
            timer = threading.Timer(EXIT_SECONDS, os._exit, (1,))
            timer.daemon = True
            timer.start()
            task.cancel()
        stopped.set()

    def parent_gone(parent_pipe: int) -> None:
        loop.remove_reader(parent_pipe)
        stopped.set()

    loop.add_signal_handler(signal.SIGTERM, stop)
    if isinstance(end, int):
        loop.add_reader(end, parent_gone, end)
        return stopped
    loop.add_signal_handler(signal.SIGINT, stop)
    if end.received:
        echo_until = loop.time() + ECHO_SECONDS
        stopped.set()
    return stopped


def _run(main: Coroutine[None, None, None]) -> None:
    """Run the coroutine, on uvloop if it is installed. Exit with status 1 after a second stop signal."""
    runner = asyncio.run
    with suppress(ImportError):
        import uvloop  # noqa: PLC0415 - not available on every platform

        runner = uvloop.run
    try:
        runner(main)
    except asyncio.CancelledError:
        sys.exit(1)
