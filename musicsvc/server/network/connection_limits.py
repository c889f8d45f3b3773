"""Limits on connections: how many are open, in total and per client, and how long they wait.

If there are too many, idle ones are closed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from musicsvc.networks import client_network

LINGER_ZERO = struct.pack("ii", 1, 0)  # the value of SO_LINGER that discards unsent data


@dataclass(slots=True, eq=False)
class ClientConnections:
    key: str  # the IPv4 address or the IPv6 /64 network
    count: int = 0
    idle: OrderedDict[Slot, None] = field(default_factory=OrderedDict)


@dataclass(slots=True, eq=False)
class Slot:
    """One of the limited places for open connections, and the connection that has taken it."""

    socket: socket.socket
    address: str
    client: ClientConnections
    released: bool = False  # whether the connection has ended
    pending: bool = False  # a request that has just arrived will probably be answered in this turn of the event loop

    def discard_unsent(self) -> None:
        """Let the system discard unsent data when the connection is closed."""
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)


class ConnectionSlots:
    """The connection slots of one process. If all are taken, the connection that has been idle longest is closed."""

    def __init__(self, capacity: int, capacity_per_client: int, exempt: Sequence[str] = ()) -> None:
        """`capacity_per_client`: 0 means no limit. `exempt`: networks whose clients have no limit per client."""
        self._capacity = capacity
        self._capacity_per_client = capacity_per_client
        self._exempt = [ipaddress.ip_network(name, strict=False) for name in exempt]
        self._clients: dict[str, ClientConnections] = {}
        self._idle: OrderedDict[Slot, None] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def acquire(self, connection: socket.socket, address: str) -> Slot | None:
        """Return a slot for a new connection. If none is free, close an idle connection, or else return None."""
        key, limited = self._client_of(address)
        client = self._clients.get(key) or ClientConnections(key)
        if limited and client.count >= self._capacity_per_client and not self._evict(client.idle):
            return None
        if self._count >= self._capacity and not self._evict(self._idle):
            return None
        slot = Slot(connection, address, client)
        self._clients[key] = client
        client.count += 1
        self._count += 1
        self.mark_idle(slot)
        return slot

    def mark_idle(self, slot: Slot) -> None:
        """Record that the connection has no request in progress. It may be closed to free its slot."""
        slot.pending = False
        if not slot.released:
            self._idle[slot] = slot.client.idle[slot] = None
            self._idle.move_to_end(slot)
            slot.client.idle.move_to_end(slot)

    def mark_busy(self, slot: Slot) -> None:
        """Record that the connection has a request in progress. It must not be closed to free its slot."""
        self._idle.pop(slot, None)
        slot.client.idle.pop(slot, None)

    def release(self, slot: Slot) -> None:
        """Free the slot of a connection that has ended. Calling it twice is harmless."""
        if slot.released:
            return
        self.mark_busy(slot)
        slot.released = True
        self._count -= 1
        slot.client.count -= 1
        if not slot.client.count:
            del self._clients[slot.client.key]

    def evict_idle(self) -> bool:
        """Close the connection that has been idle longest. Return False if no connection is idle."""
        return self._evict(self._idle)

    def _evict(self, idle: OrderedDict[Slot, None]) -> bool:
        slot = next((slot for slot in idle if not slot.pending), None)
        if slot is None:
            return False
        # The system then reports the end of the connection to its transport, whatever state the transport is in.
        with suppress(OSError):
            slot.socket.shutdown(socket.SHUT_RDWR)
        self.release(slot)
        return True

    def _client_of(self, text: str) -> tuple[str, bool]:
        """Return the client as an IPv4 address or IPv6 /64 network, and whether the limit per client applies to it."""
        address = ipaddress.ip_address(text.partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        exempt = address.is_loopback or any(
            address in network for network in self._exempt if network.version == address.version
        )
        return client_network(str(address)), self._capacity_per_client > 0 and not exempt


class Deadline:
    """Calls `on_timeout` once the deadline has passed, unless it is moved or cleared before."""

    __slots__ = ("_at", "_loop", "_on_timeout", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[], None]) -> None:
        self._loop = loop
        self._on_timeout = on_timeout
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float, now: float | None = None) -> None:
        self._at = (self._loop.time() if now is None else now) + seconds
        if self._timer is not None and self._timer.when() > self._at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._at, self._check)

    def clear(self) -> None:
        """Clear the deadline. The timer keeps running, because cancelling it costs more."""
        self._at = None

    def end(self) -> None:
        """Clear the deadline and cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if self._loop.time() < self._at:
            self._timer = self._loop.call_at(self._at, self._check)
            return
        self._on_timeout()
