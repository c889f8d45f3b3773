"""The accounting of each bounded memory: it counts what it holds, after any sequence of operations."""

import random
import socket
from collections import Counter

from musicsvc.errors import Overloaded
from musicsvc.server.freshness import Source, Stamp
from musicsvc.server.network.connection_limits import ConnectionSlots, Slot
from musicsvc.server.responses import answer_cache as answers
from musicsvc.server.responses.answer_cache import AnswerCache, Fragment
from musicsvc.server.responses.large import UNCOUNTED, AnswerMemory, Reservation
from musicsvc.server.shapes.envelope import MIN_COMPRESSED
from tests.server.responses.test_answer_cache import Moments, encoded
from tests.server.responses.test_answer_cache import opened as opened_slot

ROOM = 32_000  # bytes; half of it for about six answers
TARGETS = ("a", "bb", "c" * 700)
TABLES = ("album", "track")
UNIT = 1024 * 1024
CLIENTS = (("192.0.2.1", None), ("192.0.2.2", None), ("192.0.2.1", "token 7"), ("2001:db8::1", "account 8"))
RESERVATIONS = 10
STEPS = 1500
PEERS = ("192.0.2.1", "192.0.2.2", "127.0.0.1", "2001:db8:1:2::1", "2001:db8:1:2::2")


def bytes_of_answers(cache: AnswerCache) -> int:
    packed = {True: 2, False: 1}  # a long body may be kept in its gzip form too
    return sum(
        answers.OVERHEAD + len(target) + packed[len(answer.content) >= MIN_COMPRESSED] * len(answer.content)
        for (target, _), (answer, *_) in cache._entries.items()
    )


def test_the_answer_cache_and_its_rows() -> None:
    chance, moments = random.Random(1), Moments()
    cache = AnswerCache(ROOM, moments)
    slots: list[answers.Slot] = []  # of requests that run at once, perhaps for the same target
    for _ in range(STEPS):
        step, target, size = chance.randrange(12), chance.choice(TARGETS), chance.randrange(1, 3000)
        if step < 4:
            if isinstance(cache.find(target), answers.Slot):
                slots.append(opened_slot(cache, target, chance.choice(TABLES)))
        elif step < 8 and slots:
            slot = slots.pop(chance.randrange(len(slots)))
            slot.fill(encoded(size))
        elif step == 8:
            moments.change(chance.choice(TABLES))
        elif step == 9:
            source = Source(Stamp(moments.number, 0.0), frozenset(TABLES[:1]))
            cache.fragments.add("kind", {chance.randrange(3): Fragment(b"1" * size, source)})
        assert cache.size == bytes_of_answers(cache) <= ROOM // 2
        held = cache.fragments._fragments.values()
        assert cache.fragments.size == sum(answers.ROW_OVERHEAD + len(each.content) for each in held) <= ROOM // 2


def test_the_memory_of_unsent_answers() -> None:
    chance = random.Random(1)
    memory = AnswerMemory(8 * UNIT)
    reservations = [Reservation(memory, *CLIENTS[number % len(CLIENTS)]) for number in range(RESERVATIONS)]
    held = [0] * RESERVATIONS

    def by_client() -> Counter[tuple[str, str | None]]:
        found: Counter[tuple[str, str | None]] = Counter()
        for number, size in enumerate(held):
            found[CLIENTS[number % len(CLIENTS)]] += size
        return found

    most = [0, 0, 0]  # at any time: in all, of one client, of all clients without a token
    for _ in range(STEPS):
        number, wanted = chance.randrange(RESERVATIONS), chance.randrange(6) * UNIT // 2 or UNCOUNTED
        if chance.randrange(12) == 0:
            reservations[number].release()
            reservations[number] = Reservation(memory, *CLIENTS[number % len(CLIENTS)])
            held[number] = 0
        elif accepted(reservations[number], wanted):
            held[number] = 0 if wanted == UNCOUNTED else wanted
        clients = by_client()
        without = sum(size for (_, token), size in clients.items() if token is None)
        assert (memory.total, memory._anonymous) == (sum(held), without)
        assert sorted(memory._held.values()) == sorted(filter(None, clients.values()))
        most = [*map(max, most, (sum(held), max(clients.values()), without))]
    assert most == [8 * UNIT, 2 * UNIT, 4 * UNIT]


def accepted(reservation: Reservation, size: int) -> bool:
    try:
        reservation.resize(size)
    except Overloaded:
        return False
    return True


def test_the_slots_of_connections() -> None:
    chance, slots = random.Random(1), ConnectionSlots(4, 2)
    with socket.socket() as end:  # of all connections; closing it twice does no harm
        known: list[Slot] = []  # some have been released
        idle: list[Slot] = []  # the one that has been idle longest first
        for _ in range(STEPS):
            step, slot = chance.randrange(12), chance.choice([*known, None])
            if step < 4:
                if (new := slots.acquire(end, chance.choice(PEERS))) is not None:
                    known = [*(each for each in known if each in known[-4:] or not each.released), new]
                    idle = [*idle, new]
            elif step == 4:
                left = [each for each in idle if not each.released]
                assert slots.evict_idle() is bool(left)
                assert all(each.released for each in left[:1])
            elif slot is not None and step == 5:
                slots.release(slot)
            elif slot is not None and step < 9:
                slots.mark_busy(slot)
                idle = [each for each in idle if each is not slot]
            elif slot is not None:
                slots.mark_idle(slot)
                idle = [*(each for each in idle if each is not slot), slot]
            idle = [each for each in idle if not each.released]
            taken = [each for each in known if not each.released]
            assert len(slots) == len(taken) <= 4
            assert list(slots._idle) == idle
            assert slots._clients == {each.client.key: each.client for each in taken}
            for client in slots._clients.values():
                assert (
                    client.count
                    == sum(each.client is client for each in taken)
                    <= (4 if client.key == "127.0.0.1" else 2)
                )
                assert list(client.idle) == [each for each in idle if each.client is client]
