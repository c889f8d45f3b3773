"""Who is connected: how many at all, how many from one address, and who makes room for a new one."""

from __future__ import annotations

import ipaddress
import socket
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from musicsvc.networks import client_network

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True, eq=False)
class Origin:
    """The connections of one address; `bounded` where there is a limit on them."""

    key: str
    bounded: bool
    count: int = 0
    waiting: OrderedDict[Place, None] = field(default_factory=OrderedDict)


@dataclass(slots=True, eq=False)
class Place:
    """One connection from its acceptance to its end; `gone` once its place is free again."""

    socket: socket.socket
    address: str
    origin: Origin
    gone: bool = False


class Places:
    """Gives a place to each connection.

    Those that have no request under way are waiting, in the order in which they began to: new ones, slow ones and
    kept ones alike. Where there is no place, the one that has waited longest makes room; a client that means it has
    sent its request long before.
    """

    def __init__(self, most: int, most_of_one: int, unbounded: Sequence[str] = ()) -> None:
        """`most_of_one` address, 0 for no bound; it does not hold for loopback and the networks `unbounded`."""
        self._most = most
        self._most_of_one = most_of_one
        self._unbounded = [ipaddress.ip_network(name, strict=False) for name in unbounded]
        self._origins: dict[str, Origin] = {}
        self._waiting: OrderedDict[Place, None] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, connection: socket.socket, address: str) -> Place | None:
        """A place for the connection, which waits from now on; None where all have requests under way."""
        key, bounded = self._judge(address)
        origin = self._origins.get(key) or Origin(key, bounded)
        full_of_one = origin.bounded and origin.count >= self._most_of_one
        if full_of_one and not self._make_room(origin.waiting):
            return None
        if self._count >= self._most and not self._make_room(self._waiting):
            return None
        place = Place(connection, address, origin)
        self._origins[key] = origin
        origin.count += 1
        self._count += 1
        self.wait(place)
        return place

    def wait(self, place: Place) -> None:
        """Nothing of the connection is under way: it may have to make room."""
        if not place.gone:
            self._waiting[place] = place.origin.waiting[place] = None

    def work(self, place: Place) -> None:
        """A request of the connection is under way: it keeps its place."""
        self._waiting.pop(place, None)
        place.origin.waiting.pop(place, None)

    def leave(self, place: Place) -> None:
        """The connection has ended."""
        if place.gone:
            return
        self.work(place)
        place.gone = True
        self._count -= 1
        place.origin.count -= 1
        if not place.origin.count:
            del self._origins[place.origin.key]

    def make_room(self) -> bool:
        """End the connection that has waited longest; False where none waits."""
        return self._make_room(self._waiting)

    def _make_room(self, waiting: OrderedDict[Place, None]) -> bool:
        if not waiting:
            return False
        place = next(iter(waiting))
        # Its transport, in whatever state, is told by the system that this is the end.
        with suppress(OSError):
            place.socket.shutdown(socket.SHUT_RDWR)
        self.leave(place)
        return True

    def _judge(self, text: str) -> tuple[str, bool]:
        """What the connections of an address are counted under, and whether they are bounded."""
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return text, self._most_of_one > 0
        address = getattr(address, "ipv4_mapped", None) or address
        free = address.is_loopback or any(
            address in network for network in self._unbounded if network.version == address.version
        )
        bounded = self._most_of_one > 0 and not free
        return client_network(str(address)), bounded
