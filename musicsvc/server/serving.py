"""From the command to a server that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from musicsvc.errors import Failure
from musicsvc.server.app import App
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.multiprocess import Share
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.network import tls
from musicsvc.server.process import malloc, open_files
from musicsvc.server.process.signals import Early
from musicsvc.server.process.supervisor import Supervisor
from musicsvc.store import opening

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from musicsvc.clock import Clock
    from musicsvc.config import Settings

HURRY_SECONDS = 0.3
BACKLOG = 1024
# Bytes that the system holds for a connection; by default it would go to megabytes for a client that is slow.
UNSENT = 128 * 1024
RECEIVED = 64 * 1024


def serve(settings: Settings, clock: Clock, ready: Callable[[str], None]) -> None:
    """Listen and answer until SIGTERM or SIGINT; `ready` is told the service's root once it listens.

    Raises Failure where the address cannot be used, or would carry tokens over plain HTTP.
    """
    open_files.raise_limit()
    malloc.give_back_large()
    context = tls.create_context(settings.server)
    _resolved(settings.server.host, settings.server.port)
    tls.require_encryption(settings.server)
    opening.connect(settings.store_url).close()
    listener = listen(settings.server.host, settings.server.port)
    root = root_of(settings, listener, tls=context is not None)
    early = Early()
    ready(root)

    def work(metrics: Metrics, lifeline: int | None = None) -> None:
        with log_setup.started(settings.log, clock, threaded=True) as writer:
            collectors.of_logs(metrics, writer)
            _run(_work(settings, clock, root, listener, context, early if lifeline is None else lifeline, metrics))

    if settings.server.workers == 1:
        work(Metrics())
        return
    with log_setup.started(settings.log, clock, threaded=False):
        _supervise(work, settings.server.workers, listener, early)


def _supervise(work: Callable[[Metrics, int], None], workers: int, listener: socket.socket, early: Early) -> None:
    """Let several processes work, which count together."""
    with Share.made(workers) as share:

        def join(worker: int, lifeline: int) -> None:
            work(Metrics(share and share.joined(worker)), lifeline)

        Supervisor(join, workers, listener, lost=share.bury if share is not None else None).run(early)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises Failure where the port is taken or the address is not this machine's."""
    with ExitStack() as undo:
        try:
            family, kind, protocol, address = _resolved(host, port)
            listener = undo.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
            if (option := getattr(socket, "TCP_NOTSENT_LOWAT", None)) is not None:
                listener.setsockopt(socket.IPPROTO_TCP, option, UNSENT)
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
    """Family, kind, protocol and address of the socket. Raises Failure where the host is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise Failure(f"{host} is no host name or address of this machine: {error.strerror}.") from None
    except UnicodeError:
        raise Failure(f"{host} is no host name or address of this machine.") from None
    return family, kind, protocol, address


def root_of(settings: Settings, listener: socket.socket, *, tls: bool) -> str:
    """The address that absolute URLs begin with: the setting, else where we listen; never the Host header."""
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
    end: Early | int,
    metrics: Metrics,
) -> None:
    """Serve until a signal, or in a worker until the supervisor's end of the lifeline `end` is closed."""
    store = opening.connect(settings.store_url)
    collectors.of_backups(metrics, settings, clock)
    app = App(settings, store, clock, root, metrics)
    if backups := backup_scheduler.build(settings, clock):
        app.add_job(backups)
    stopped = _until_told(end)
    await app.start(listener, context)
    malloc.keep_what_stands()
    await stopped.wait()
    await app.stop()
    store.close()


def _until_told(end: Early | int) -> asyncio.Event:
    """An event that is set when the process is to end; a second signal ends it at once."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def stop() -> None:
        if stopped.is_set() and task is not None:
            hurry = threading.Timer(HURRY_SECONDS, os._exit, (1,))
            hurry.daemon = True
            hurry.start()
            task.cancel()
        stopped.set()

    def lose(lifeline: int) -> None:
        loop.remove_reader(lifeline)
        stopped.set()

    loop.add_signal_handler(signal.SIGTERM, stop)
    if isinstance(end, int):
        loop.add_reader(end, lose, end)
        return stopped
    loop.add_signal_handler(signal.SIGINT, stop)
    if end.came:
        stop()
    return stopped


def _run(main: Coroutine[None, None, None]) -> None:
    """Run on uvloop where there is one; exits with 1 where it was cancelled by a second signal."""
    runner = asyncio.run
    with suppress(ImportError):
        import uvloop  # noqa: PLC0415 - not there on every platform

        runner = uvloop.run
    try:
        runner(main)
    except asyncio.CancelledError:
        sys.exit(1)
