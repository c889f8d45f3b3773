"""The `serve` command: run the server in one or several processes until a signal stops it."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from math import inf
from typing import Any

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.multiprocess import SharedMetrics
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.process import malloc, open_files
from musicsvc.server.process.signals import STOPPED, EarlySignal, Hangup, stop_reason
from musicsvc.server.process.supervisor import Supervisor
from musicsvc.server.reloading import RELOADED, ReloadableServer, Source
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.url import path_of

StopRequest = asyncio.Future[int | None]  # its result: the signal, or None in a worker process

log = logging.getLogger("musicsvc")
ECHO_SECONDS = 0.2
# How long another thread may run Python while the event loop waits. With Python's 5 ms, an export delays each answer.
TURN_SECONDS = 0.0005
EXIT_SECONDS = 0.3  # the longest time from the second signal until the process exits
BACKLOG = 1024
# Size in bytes of the system's buffers for a connection; by default they grow to megabytes for a slow client.
SEND_BUFFER = 128 * 1024
RECEIVE_BUFFER = 64 * 1024


def serve(
    settings: Settings, clock: Clock, ready: Callable[[str], None], load: Callable[[], Settings] | None = None
) -> None:
    """Serve requests until SIGTERM or SIGINT. `ready` is called with the root URL once the server listens.

    `load`: reads the settings again on SIGHUP; without it, SIGHUP ends the process. Raises Failure if the address
    cannot be used, or if tokens would be sent over plain HTTP.
    """
    hangup = Hangup() if load is not None else None  # before the first thread, which inherits that SIGHUP is blocked
    open_files.raise_limit()
    malloc.return_large_blocks()
    sys.setswitchinterval(TURN_SECONDS)
    _resolved(settings.server.host, settings.server.port)
    source = Source(settings, load or (lambda: settings))
    opening.connect(settings.store_url).close()
    listener = listen(settings.server.host, settings.server.port)
    early = EarlySignal()
    root = source.current.root(listener)
    with file_locks.serving(path_of(settings.store_url), root):
        ready(root)
        _serve(source, clock, listener, early, hangup)


def _serve(source: Source, clock: Clock, listener: socket.socket, early: EarlySignal, hangup: Hangup | None) -> None:
    """Serve requests on the listener in this process or, if there are several workers, in processes of their own."""
    settings = source.current.settings

    def work(metrics: Metrics, parent_pipe: int | None = None) -> None:
        with log_setup.started(source.current.settings.log, clock, threaded=True) as writer:
            collectors.add_logs(metrics, writer)
            server = ReloadableServer(source, clock, listener, metrics, writer, announce=parent_pipe is None)
            _run(_work(server, early if parent_pipe is None else parent_pipe, hangup))

    if settings.server.workers == 1:
        work(Metrics())
        return
    with log_setup.started(settings.log, clock, threaded=False) as writer:

        def reload() -> bool:
            reloaded = source.reload(announce=True)
            if reloaded:
                log_setup.change(writer, source.current.settings.log)
                log.info(RELOADED)
            return reloaded

        _supervise(work, settings.server.workers, listener, early, hangup, reload)


def _supervise(
    work: Callable[[Metrics, int], None],
    workers: int,
    listener: socket.socket,
    early: EarlySignal,
    hangup: Hangup | None,
    reload: Callable[[], bool],
) -> None:
    """Run `work(metrics, pipe)` in each worker process. `pipe` is a descriptor that closes when the parent exits."""
    with SharedMetrics.create(workers) as shared:

        def join(worker: int, parent_pipe: int) -> None:
            work(Metrics(shared and shared.join(worker)), parent_pipe)

        on_exit = shared.worker_exited if shared is not None else None
        Supervisor(join, workers, listener, on_exit, reload).run(early, hangup)


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


async def _work(server: ReloadableServer, end: EarlySignal | int, hangup: Hangup | None) -> None:
    """Serve until a stop signal arrives. In a worker process, serve until the supervisor closes the pipe `end`."""
    stopped = _stop_request(end)
    await server.start()
    if hangup is not None:
        _handle_hangup(hangup, server, stopped)
    number = await stopped
    try:
        await server.stop()
    finally:
        if isinstance(end, EarlySignal) and number is not None:  # the supervisor logs the stop of its workers
            log.info(STOPPED, stop_reason(number))


def _handle_hangup(hangup: Hangup, server: ReloadableServer, stopped: StopRequest) -> None:
    """On SIGHUP, reload the settings, or stop if the terminal was closed."""

    def hang_up() -> None:
        if not hangup.is_closed_terminal():
            server.request_reload()
        elif not stopped.done():
            stopped.set_result(signal.SIGHUP)

    if hangup.enabled:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
    hangup.accept()


def _stop_request(end: EarlySignal | int) -> StopRequest:
    """Return a future that is done when the server must stop. A second stop signal ends the server at once."""
    loop = asyncio.get_running_loop()
    stopped: StopRequest = loop.create_future()
    task = asyncio.current_task()
    # uvloop delivers a signal once more if it arrived while the loop ran without a handler for it.
    echo_until = -inf

    def stop(number: int) -> None:
        if stopped.done() and task is not None:
            if loop.time() < echo_until:
                return
            timer = threading.Timer(EXIT_SECONDS, os._exit, (1,))
            timer.daemon = True
            timer.start()
            task.cancel()
        request(number)

    def request(number: int | None) -> None:
        if not stopped.done():
            stopped.set_result(number)

    def parent_gone(parent_pipe: int) -> None:
        loop.remove_reader(parent_pipe)
        request(None)

    loop.add_signal_handler(signal.SIGTERM, stop, signal.SIGTERM)
    if isinstance(end, int):
        loop.add_reader(end, parent_gone, end)
        return stopped
    loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)
    if end.received is not None:
        echo_until = loop.time() + ECHO_SECONDS
        request(end.received)
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
