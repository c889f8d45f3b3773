"""Connection slots: which connection makes room, and which is refused."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from musicsvc.server.network.connection_limits import ConnectionSlots, Slot


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def line(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection."""
    ends = socket.socketpair()
    for end in ends:
        stack.enter_context(end).settimeout(1)
    return ends


def fill(slots: ConnectionSlots, stack: ExitStack, *addresses: str) -> list[tuple[Slot, socket.socket]]:
    """Acquire a slot for each address; return them with the other ends of their connections."""
    found = []
    for address in addresses:
        here, there = line(stack)
        slot = slots.acquire(here, address)
        assert slot is not None
        found.append((slot, there))
    return found


def is_open(end: socket.socket) -> bool:
    end.setblocking(False)
    try:
        return end.recv(1) != b""
    except BlockingIOError:
        return True


def test_the_connection_that_has_waited_longest_makes_room(stack: ExitStack) -> None:
    slots = ConnectionSlots(3, 0)
    (first, a), (second, b), (third, c) = fill(slots, stack, *["192.0.2.1"] * 3)
    slots.mark_busy(first)
    slots.mark_busy(second)
    slots.mark_idle(first)  # second is busy, third has been idle longer than first
    fill(slots, stack, "192.0.2.2")
    assert (is_open(a), is_open(b), is_open(c)) == (True, True, False)
    assert (first.released, second.released, third.released) == (False, False, True)
    fill(slots, stack, "192.0.2.2")
    assert (is_open(a), is_open(b)) == (False, True)
    assert len(slots) == 3


def test_where_all_are_at_work_there_is_no_place(stack: ExitStack) -> None:
    slots = ConnectionSlots(2, 0)
    both = fill(slots, stack, "192.0.2.1", "192.0.2.2")
    for slot, _ in both:
        slots.mark_busy(slot)
    assert slots.acquire(line(stack)[0], "192.0.2.3") is None
    assert not slots.evict_idle()
    slots.release(both[0][0])
    slots.release(both[0][0])  # the end of a connection can be reported twice
    fill(slots, stack, "192.0.2.3")
    assert len(slots) == 2


def test_an_address_has_its_own_bound_and_makes_room_for_itself(stack: ExitStack) -> None:
    slots = ConnectionSlots(100, 2)
    (_, other), (first, a), (second, b) = fill(slots, stack, "192.0.2.9", "192.0.2.1", "192.0.2.1")
    fill(slots, stack, "192.0.2.1")
    assert (is_open(other), is_open(a), is_open(b)) == (True, False, True)
    assert first.released
    for slot in list(second.client.idle):
        slots.mark_busy(slot)
    assert slots.acquire(line(stack)[0], "192.0.2.1") is None
    assert slots.acquire(line(stack)[0], "::ffff:192.0.2.1") is None
    fill(slots, stack, "192.0.2.2")


def test_addresses_that_one_subscriber_has_count_as_one(stack: ExitStack) -> None:
    slots = ConnectionSlots(100, 1)
    ((first, _),) = fill(slots, stack, "2001:db8:1:2::1%eth0")
    slots.mark_busy(first)
    assert slots.acquire(line(stack)[0], "2001:db8:1:2:ffff::9") is None
    fill(slots, stack, "2001:db8:1:3::1")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "10.1.2.3"])
def test_this_machine_and_trusted_proxies_are_not_bounded(stack: ExitStack, address: str) -> None:
    slots = ConnectionSlots(100, 1, ["10.0.0.0/8"])
    found = fill(slots, stack, *[address] * 5)
    assert not any(slot.released for slot, _ in found)
    for slot, _ in found:
        slots.release(slot)
    assert (len(slots), slots._clients, slots._idle) == (0, {}, {})


def test_no_bound_is_none(stack: ExitStack) -> None:
    assert not any(slot.released for slot, _ in fill(ConnectionSlots(100, 0), stack, *["192.0.2.1"] * 9))
