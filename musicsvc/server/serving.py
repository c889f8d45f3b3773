"""From the command to a server that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import signal
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from musicsvc.config import Server
from musicsvc.errors import Failure
from musicsvc.server import supervisor
from musicsvc.server.app import BACKLOG, App
from musicsvc.store import database

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.clock import Clock
    from musicsvc.config import Settings


def serve(settings: Settings, clock: Clock, ready: Callable[[str], None]) -> None:
    """Listen and answer until SIGTERM or SIGINT; `ready` is told the service's root once it listens.

    Raises Failure where the address cannot be used, or would carry tokens over plain HTTP.
    """
    tls = _tls(settings.server)
    refuse_plain(settings.server, tls=tls is not None)
    database.connect(settings.store_url).close()
    listener = listen(settings.server.host, settings.server.port)
    root = root_of(settings, listener, tls=tls is not None)
    ready(root)

    def work() -> None:
        _run(_work(settings, clock, root, listener, tls))

    if settings.server.workers == 1:
        work()
    else:
        supervisor.run(work, settings.server.workers)


def refuse_plain(server: Server, *, tls: bool) -> None:
    """Raises Failure for an address beyond this machine without TLS and without a proxy that is named."""
    unnamed = server.trusted_proxies == Server().trusted_proxies
    if not tls and unnamed and not _is_loopback(server.host):
        raise Failure(
            f"{server.host} is reachable from elsewhere, and plain HTTP would expose tokens. Pass --tls-cert and"
            " --tls-key, or name your TLS proxy in server.trusted_proxies."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises Failure where the port is taken or the address is not this machine's."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Failure(f"Port {port} of {host} is taken. Choose another one with --port.") from None
        raise Failure(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    listener.setblocking(False)  # noqa: FBT003 - the library's signature
    return listener


def root_of(settings: Settings, listener: socket.socket, *, tls: bool) -> str:
    """The address that absolute URLs begin with: the setting, else where we listen; never the Host header."""
    if settings.server.public_url is not None:
        return settings.server.public_url
    host = f"[{settings.server.host}]" if ":" in settings.server.host else settings.server.host
    return f"{'https' if tls else 'http'}://{host}:{listener.getsockname()[1]}"


def _tls(server: Server) -> ssl.SSLContext | None:
    if server.tls_cert is None and server.tls_key is None:
        return None
    if server.tls_cert is None or server.tls_key is None:
        raise Failure("TLS needs both --tls-cert and --tls-key.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(server.tls_cert, server.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"The certificate {server.tls_cert} or its key cannot be used: {error}.") from None
    return context


async def _work(
    settings: Settings, clock: Clock, root: str, listener: socket.socket, tls: ssl.SSLContext | None
) -> None:
    store = database.connect(settings.store_url)
    app = App(settings, store, clock, root)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_once(stopped))
    await app.start(listener, tls)
    await stopped.wait()
    await app.stop()
    store.close()


def _stop_once(stopped: asyncio.Event) -> Callable[[], None]:
    """What a signal does: the first one asks for an orderly end, the second one ends the process."""

    def stop() -> None:
        if stopped.is_set():
            raise SystemExit(1)
        stopped.set()

    return stop


def _run(main: object) -> None:
    runner = asyncio.run
    with suppress(ImportError):
        import uvloop  # noqa: PLC0415 - not there on every platform

        runner = uvloop.run
    runner(main)  # type: ignore[arg-type]
