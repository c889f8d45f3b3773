"""The memory for answers that wait until their clients read them: one budget a process, shared among clients."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from musicsvc.errors import Overloaded
from musicsvc.networks import client_network

if TYPE_CHECKING:
    from musicsvc.server.request.context import Call

UNCOUNTED = 64 * 1024  # bytes of an answer that is never refused
SHARE = 4  # one client may hold this fraction of the budget
WITHOUT_TOKEN = 2  # all clients without a token together may hold this fraction
MEBIBYTE = 1 << 20


class AnswerMemory:
    """The budget of one process; safe to use from any thread."""

    def __init__(self, limit: int) -> None:
        """`limit`: bytes."""
        self._limit = limit
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._total = 0
        self._without_token = 0

    @property
    def total(self) -> int:
        """Bytes that answers hold now."""
        return self._total

    def take(self, client: str, size: int, *, token: bool) -> None:
        """Take so many bytes, or give back a negative number of them. Raises Overloaded."""
        with self._lock:
            if size > 0:
                self._require_room(client, size, token=token)
            self._total += size
            self._without_token += 0 if token else size
            self._held[client] += size
            if not self._held[client]:
                del self._held[client]

    def _require_room(self, client: str, size: int, *, token: bool) -> None:
        share = self._limit // SHARE
        if size > share:
            raise Overloaded(f"The answer takes {_mebibytes(size)}; one client may hold {_mebibytes(share)}.")
        if self._held[client] + size > share:
            raise Overloaded(
                f"Your unread answers hold the {_mebibytes(share)} that one client may. Read them, then try again."
            )
        full = not token and self._without_token + size > self._limit // WITHOUT_TOKEN
        if full or self._total + size > self._limit:
            raise Overloaded("Too many large answers wait to be read. Try again in a second.")


class Reservation:
    """What the answer to one call holds of the budget, until it is released."""

    def __init__(self, memory: AnswerMemory, call: Call) -> None:
        self._memory = memory
        self._call = call
        self._lock = threading.Lock()
        self._held = 0
        self._released = False

    def resize(self, size: int) -> None:
        """Hold this many bytes in place of what it holds now. Raises Overloaded, also once it is released."""
        with self._lock:
            if self._released:
                raise Overloaded("The client has gone.")
            self._hold(size if size > UNCOUNTED else 0)

    def release(self) -> None:
        """Hold nothing, for good: a unit may still be at work on an answer that nobody waits for."""
        with self._lock:
            self._released = True
            self._hold(0)

    def _hold(self, size: int) -> None:
        if size == self._held:
            return
        token = self._call.token_id
        client = f"address {client_network(self._call.address)}" if token is None else f"token {token}"
        self._memory.take(client, size - self._held, token=token is not None)
        self._held = size


def _mebibytes(size: int) -> str:
    return f"{size / MEBIBYTE:,.1f} MiB"
