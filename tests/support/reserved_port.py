"""A port for a server that must be told one, because the test has to know it before the server starts."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 that the system gives to nobody else in the `with` block.

    On Linux a server can listen on it nevertheless: both sockets have SO_REUSEADDR, and this one does not listen.
    Elsewhere the port is only free at the moment.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        if sys.platform != "linux":
            bound.close()
        yield port


def can_listen(port: int) -> bool:
    """Return whether a server could listen on the port. A process that was killed may do so for a moment longer."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True
