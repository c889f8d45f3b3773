"""Messages to the service manager that started the server, such as systemd (sd_notify(3))."""

import logging
import socket
import time

from musicsvc import environment

log = logging.getLogger("musicsvc")
STOPPING, ALIVE = "STOPPING=1", "WATCHDOG=1"


class ServiceManager:
    """The service manager of this process. Without one, `tell` does nothing."""

    def __init__(self, address: str | None, watchdog: float | None, status: str = "") -> None:
        """`address`: its socket. `watchdog`: it ends a server that has not sent ALIVE for so long, in seconds.

        `status`: a line that it shows to users.
        """
        self.present = address is not None
        self.watchdog = watchdog
        self._status = status
        self._address = "\0" + address[1:] if address and address.startswith("@") else address
        self._failed = False

    @classmethod
    def of_process(cls, status: str) -> "ServiceManager":
        return cls(environment.notify_socket(), environment.watchdog_seconds(), status)

    def tell(self, *lines: str) -> None:
        """Send a message. If that fails, log it once, because the server works without a service manager."""
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.settimeout(1)  # its queue may be full
                channel.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._failed:
                log.warning("cannot notify the service manager at %s: %s", self._address.replace("\0", "@"), error)
            self._failed = True

    def tell_ready(self, outcome: str = "") -> None:
        """Tell that the server serves, or that it goes on to. `outcome`: that of loading the settings again."""
        self.tell("READY=1", f"STATUS={self._status}{outcome and f' ({outcome})'}")

    def tell_reloading(self) -> None:
        """Tell that the settings are being loaded again. `tell_ready` must follow."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
