"""The `serve` command: listen, and run worker processes until a signal stops them."""

import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics.multiprocess import SharedMetrics
from musicsvc.server.network.tls import Configuration
from musicsvc.server.process import resources
from musicsvc.server.process.service_manager import ServiceManager
from musicsvc.server.process.supervisor import ENDING_SECONDS, SIGNALS, Supervisor
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.url import without_password

if TYPE_CHECKING:
    from musicsvc.server.demo.state import DemoState

log = logging.getLogger("musicsvc")
FIXED = ("host", "port", "workers", "base_path")  # of the section `server`; a restart is needed to change them
RELOADED = "reloaded the settings"
REFUSED = "could not reload the settings, the old ones still apply"
# How long another thread may run Python while the event loop waits. With Python's 5 ms, an export delays each answer.
TURN_SECONDS = 0.0005
BACKLOG = 1024
# Size in bytes of the system's buffers for a connection; by default they grow to megabytes for a slow client.
SEND_BUFFER = 128 * 1024
RECEIVE_BUFFER = 64 * 1024


def serve(
    settings: Settings,
    clock: Clock,
    ready: Callable[[str], None],
    load: Callable[[], Settings] | None = None,
    check_database: Callable[[], None] | None = None,
    demo: "DemoState | None" = None,
) -> None:
    """Serve requests until SIGTERM or SIGINT. `ready` is called with the root URL once the server listens.

    `load`: reads the settings again on SIGHUP; without it, SIGHUP stops the server. `check_database`: raises Failure if
    the database cannot be used, and is called in the first worker; by default, it is opened. `demo`: the state of a
    demo, in demo mode only. Raises Failure if the address cannot be used, or if tokens would be sent over plain HTTP.
    """
    with ExitStack() as undo:
        # The supervisor waits for these signals. Threads of the start must not get them either.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        resources.raise_file_limit()
        resources.return_large_blocks()
        sys.setswitchinterval(TURN_SECONDS)
        source = Source(settings, load or (lambda: settings))
        listener = listen(settings.server.host, settings.server.port)
        if settings.server.workers > 1:
            import_worker()  # once for all

        def check() -> None:
            worker = import_worker()
            (check_database or partial(worker.check, settings))()

        def begun() -> None:
            ready(source.current.root(listener))
            source.current.warn(clock.now())
            undo.pop_all()  # the signals stay blocked until the process exits

        _supervise(source, clock, listener, check, begun, demo, reloads=load is not None)


def _supervise(
    source: "Source",
    clock: Clock,
    listener: socket.socket,
    check: Callable[[], None],
    begun: Callable[[], None],
    demo: "DemoState | None",
    *,
    reloads: bool,
) -> None:
    """Run workers that serve requests on the listener. `reloads`: replace them on SIGHUP by some with new settings."""
    settings = source.current.settings
    workers = settings.server.workers
    with SharedMetrics.create(workers) as shared, log_setup.started(settings.log, clock, threaded=False) as writer:

        def work(number: int, link: socket.socket) -> None:
            import_worker().serve(source.current, clock, listener, shared and shared.join(number), link, demo)

        def reload() -> str:
            before = source.current
            if not source.reload():
                return REFUSED
            if supervisor.replace_workers():
                log_setup.change(writer, source.current.settings.log)
                tell(source.current.listening(listener))
                log.info(RELOADED)
                source.current.warn(clock.now())
                return RELOADED
            source.current = before
            log.error("%s: a worker process did not start", REFUSED)
            return REFUSED

        on_exit = shared.worker_exited if shared is not None else None
        manager = ServiceManager.of_process(f"Serving {source.current.root(listener)}")
        supervisor = Supervisor(work, workers, listener, reload if reloads else None, on_exit, manager, source.patience)
        supervisor.begin(check)
        with file_locks.serving(settings.place, listener.getsockname()[1]) as tell:
            tell(source.current.listening(listener))
            begun()
            supervisor.run()


def import_worker() -> Any:
    """Import what workers need, and no garbage, with garbage collection switched off. Return their module."""
    gc.disable()
    worker = import_module("musicsvc.server.worker")
    gc.freeze()
    gc.enable()
    return worker


class Source:
    """The settings and the TLS context of a running server, which can be loaded again."""

    def __init__(self, settings: Settings, load: Callable[[], Settings]) -> None:
        """`load`: reads the settings again.

        Raises Failure if the certificate is unusable, or if tokens would be sent over plain HTTP.
        """
        self.current = Configuration.of(settings)
        self._load = load

    def patience(self) -> float:
        """Return the seconds that a worker has to stop."""
        server = self.current.settings.server
        return server.shutdown_delay + server.shutdown_timeout + ENDING_SECONDS

    def reload(self) -> bool:
        """Read the settings and the certificate again. Return False, with a line in the log, if they cannot be used.

        Settings that need a restart keep their values; the log names those that have changed.
        """
        running = self.current.settings
        try:
            found = self._load()
            if changed := _needing_restart(running, found):
                log.warning("a restart is needed to change %s; until then the old value applies", ", ".join(changed))
            kept = {name: getattr(running.server, name) for name in FIXED}
            server = found.server.model_copy(update=kept)
            url = found.store_url if _same_database(running, found) else running.store_url
            new = Configuration.of(found.model_copy(update={"server": server, "database_url": url}))
        except Failure as failure:
            log.error("%s: %s", REFUSED, failure.here)  # noqa: TRY400 - a line, no trace
        except Exception:  # it would end the supervisor
            log.exception(REFUSED)
        else:
            self.current = new
            return True
        return False


def _needing_restart(running: Settings, found: Settings) -> list[str]:
    changed = [f"server.{name}" for name in FIXED if getattr(found.server, name) != getattr(running.server, name)]
    return [*changed, *["database_url"] * (not _same_database(running, found))]


def _same_database(running: Settings, found: Settings) -> bool:
    """Return whether both have the same database, apart from its password, which may have changed."""
    return without_password(found.store_url) == without_password(running.store_url)


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
