"""The settings of a running server."""

import socket
from dataclasses import dataclass
from ssl import SSLContext
from typing import Self

from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.networks import listening_url, root_url
from musicsvc.server.network import tls
from musicsvc.store.engine.url import path_of


@dataclass(frozen=True, slots=True)
class Configuration:
    """Valid settings, with the TLS context made from their certificate."""

    settings: Settings
    tls: SSLContext | None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Load the certificate. Raises Failure if it is unusable, or if tokens would be sent over plain HTTP.

        Raises Failure if there is a read replica of a SQLite file, too.
        """
        if settings.database_read_url and path_of(settings.store_url) is not None:
            raise Failure("database_read_url is set, but database_url is not that of a PostgreSQL server. Unset it.")
        context = tls.create_context(settings.server)
        tls.require_encryption(settings.server)
        return cls(settings, context)

    def root(self, listener: socket.socket) -> str:
        """Return the service's root URL, with the port of the listener. It never depends on the Host header."""
        return root_url(self.settings.server, listener.getsockname()[1])

    def listening(self, listener: socket.socket) -> str:
        """Return the root URL for programs of this machine."""
        return listening_url(self.settings.server, listener.getsockname()[1])
