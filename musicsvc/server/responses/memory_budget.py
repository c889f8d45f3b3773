"""Limits the memory of responses that clients have not read yet, for each process and each client."""

from __future__ import annotations

import threading
from collections import Counter

from musicsvc.errors import Overloaded
from musicsvc.networks import client_network

UNCOUNTED = 64 * 1024  # bytes; responses up to this size are ignored
SHARE = 4  # one client may hold this fraction of the budget
ANONYMOUS = 2  # all clients without a token or session together may hold this fraction
MEBIBYTE = 1 << 20


class AnswerMemory:
    """The memory budget of one process for unsent responses: `limit` bytes. Safe to use from any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._total = 0
        self._anonymous = 0

    @property
    def total(self) -> int:
        """The number of bytes that unsent responses hold."""
        return self._total

    def reservation(self, address: str, holder: str | None) -> Reservation:
        """Return an empty reservation for a response to a client: `holder`, or if that is None its address."""
        return Reservation(self, address, holder)

    def take(self, client: str, size: int, *, anonymous: bool) -> None:
        """Reserve `size` bytes for the client, or free bytes if `size` is negative. Raises Overloaded.

        `anonymous`: whether the client has neither a token nor a session.
        """
        with self._lock:
            if size > 0:
                self._require_room(client, size, anonymous=anonymous)
            self._total += size
            self._anonymous += size if anonymous else 0
            self._held[client] += size
            if not self._held[client]:
                del self._held[client]

    def _require_room(self, client: str, size: int, *, anonymous: bool) -> None:
        share = self._limit // SHARE
        if size > share:
            raise Overloaded(f"The response takes {_mebibytes(size)}; {_mebibytes(share)} are allowed per client.")
        if self._held[client] + size > share:
            raise Overloaded(
                f"Responses you have not read yet use all of the {_mebibytes(share)} allowed per client."
                " Read them, then try again."
            )
        full = anonymous and self._anonymous + size > self._limit // ANONYMOUS
        if full or self._total + size > self._limit:
            raise Overloaded("Too many large responses are waiting to be read. Try again in a second.")


class Reservation:
    """The part of the memory budget that the response to one request holds."""

    def __init__(self, memory: AnswerMemory, address: str, holder: str | None) -> None:
        self._memory = memory
        self._address = address
        self._holder = holder
        self._lock = threading.Lock()
        self._held = 0
        self._released = False

    def resize(self, size: int) -> None:
        """Change the reservation to `size` bytes. Raises Overloaded if too few are free, or after `release`."""
        with self._lock:
            if self._released:
                raise Overloaded("The client has disconnected.")
            self._hold(size if size > UNCOUNTED else 0)

    def release(self) -> None:
        """Free the memory. Later calls of `resize` fail: a transaction may still run after the client has gone."""
        with self._lock:
            self._released = True
            self._hold(0)

    @property
    def _client(self) -> str:
        return self._holder or f"address {client_network(self._address)}"

    def _hold(self, size: int) -> None:
        if size != self._held:
            self._memory.take(self._client, size - self._held, anonymous=self._holder is None)
            self._held = size


def _mebibytes(size: int) -> str:
    return f"{size / MEBIBYTE:,.1f} MiB"
