"""A line for heavy work: no client closes it to another, whatever it sends, and clients take turns."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import pytest

from musicsvc.errors import Crowded, Overloaded
from musicsvc.server.request.executors import RESERVED, BoundedExecutor
from tests.support.waiting import until

PATIENCE = 30.0
SHARE, WAITING = 2, 6


class Gate:
    """Work that waits until it is let through, and notes the order in which it began."""

    def __init__(self) -> None:
        self._passes = threading.Semaphore(0)
        self.begun: list[str] = []

    def work(self, name: str) -> Callable[[], str]:
        def wait() -> str:
            self.begun.append(name)
            assert self._passes.acquire(timeout=PATIENCE)
            return name

        return wait

    def open(self, number: int = 1) -> None:
        self._passes.release(number)


@contextmanager
def line(threads: int = 1, waiting: int = WAITING, share: int = SHARE) -> Iterator[tuple[BoundedExecutor, Gate]]:
    executor, gate = BoundedExecutor("line", threads, waiting, share=share, low_priority=False), Gate()
    with ExitStack() as stack:
        stack.callback(executor.close)
        stack.callback(gate.open, 1000)
        yield executor, gate


@asynccontextmanager
async def queued() -> AsyncIterator[Callable[..., asyncio.Task[str]]]:
    """Yield a function that starts work of a client in a line, as a task."""
    tasks: list[asyncio.Task[str]] = []

    def start(executor: BoundedExecutor, gate: Gate, name: str, key: str | None = None) -> asyncio.Task[str]:
        tasks.append(asyncio.create_task(executor.run(gate.work(name), name[0], key)))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def refusals(tasks: list[asyncio.Task[str]]) -> list[type[BaseException]]:
    """Return why those were refused that are not accepted, after all had the time to enter."""
    for _ in range(3):
        await asyncio.sleep(0)
    return [type(error) for task in tasks if task.done() and (error := task.exception()) is not None]


async def test_alone_a_client_has_all_places_but_two_and_beside_another_two() -> None:
    with line() as (executor, gate):
        async with queued() as start:
            mine = [start(executor, gate, f"a{number}") for number in range(WAITING + 1)]
            assert await refusals(mine) == [Overloaded] * RESERVED
            others = [start(executor, gate, name) for name in ("b1", "c1", "d1")]
            assert await refusals(others) == [Overloaded]
            gate.open(1000)
            assert await asyncio.gather(*mine[:-RESERVED]) == [f"a{number}" for number in range(WAITING - 1)]
            assert await asyncio.gather(*others[:2]) == ["b1", "c1"]
    with line() as (executor, gate):
        async with queued() as start:
            tasks = [start(executor, gate, name) for name in ("b1", "a1", "a2", "a3", "b2", "b3", "c1")]
            assert await refusals(tasks) == [Crowded, Crowded]
            assert [task.done() for task in tasks] == [False, False, False, True, False, True, False]
            with pytest.raises(Crowded, match=r"^2 of your requests of this kind are under way, and others wait\."):
                await tasks[3]


async def test_clients_take_turns_so_one_waits_for_one_piece_of_work_of_each_other() -> None:
    with line(waiting=20) as (executor, gate):
        async with queued() as start:
            tasks = [start(executor, gate, f"a{number}") for number in range(1, 6)]
            assert await refusals(tasks) == []
            tasks += [start(executor, gate, name) for name in ("b1", "b2", "c1")]
            assert await refusals(tasks) == []
            gate.open(1000)
            await asyncio.gather(*tasks)
    assert gate.begun == ["a1", "a2", "b1", "c1", "a3", "b2", "a4", "a5"]


async def test_work_that_was_given_up_leaves_its_place_once_it_is_not_under_way() -> None:
    with line(waiting=3) as (executor, gate):
        async with queued() as start:
            running, waiting = start(executor, gate, "a1"), start(executor, gate, "a2")
            await until(lambda: gate.begun == ["a1"])
            for task in (running, waiting):
                task.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)
            assert await refusals([start(executor, gate, f"a{number}") for number in (3, 4)]) == [Overloaded]
            gate.open(2)
            await until(lambda: gate.begun == ["a1", "a3"])


async def test_shared_work_for_which_another_client_waits_is_the_next_of_the_first() -> None:
    with line(waiting=20) as (executor, gate):
        async with queued() as start:
            tasks = [start(executor, gate, f"a{number}", key=f"picture {number}") for number in range(1, 6)]
            await until(lambda: gate.begun == ["a1"])
            shared = start(executor, gate, "b", key="picture 5")
            tasks[4].cancel()
            assert await refusals([shared]) == []
            gate.open(2)
            assert await shared == "a5"
    assert gate.begun[:2] == ["a1", "a5"]


async def test_a_client_that_is_refused_refuses_nobody_who_wants_the_same() -> None:
    with line() as (executor, gate):
        async with queued() as start:
            tasks = [start(executor, gate, name) for name in ("b1", "a1", "a2")]
            refused, shared = start(executor, gate, "a3", key="x"), start(executor, gate, "c1", key="x")
            assert await refusals([*tasks, refused, shared]) == [Crowded]
            gate.open(1000)
            assert await shared == "c1"


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_arrives_and_ends_two_places_are_left_to_others(seed: int) -> None:
    chance, capacity = random.Random(seed), 2 + WAITING
    held: Counter[str] = Counter()
    with line(threads=2) as (executor, gate):
        async with queued() as start:
            tasks: dict[asyncio.Task[str], str] = {}
            for number in range(200):
                client = chance.choice("aaaaaabcd")
                others = held.total() - held[client]
                room = held.total() < capacity and held[client] < (SHARE if others else capacity - RESERVED)
                task = start(executor, gate, f"{client}{number}")
                crowded = others and held[client] >= SHARE
                expected = [] if room else [Crowded if crowded else Overloaded]
                assert await refusals([task]) == expected, (number, held)
                if room:
                    tasks[task] = client
                    held[client] += 1
                assert max(held.values()) <= capacity - RESERVED
                while held.total() and chance.random() < 0.45:
                    gate.open()
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
                    assert len(done) == 1
                    held[tasks.pop(done.pop())] -= 1
