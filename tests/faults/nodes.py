"""Several nodes behind a balancer that sends each request to one that is ready, and clients that write meanwhile."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from typing import Self

from tests.faults.callers import UNAVAILABLE, Account, Caller, Connection
from tests.support.program import until

CHECK_SECONDS = 0.05
PAUSE = 0.05  # seconds between two requests of a client
TOO_MANY = 429
READS = (
    "albums",
    "tracks/1",
    "users/me",
    "artists/{artist}/tracks",
    "playlists",
    "producer-intelligence/insights/artists/{artist}",
)


class Node:
    """A node as the balancer knows it."""

    def __init__(self, root: str) -> None:
        self.port = int(root.rpartition(":")[2])
        self.ready = False
        self.taken_out = False
        self.in_flight = 0

    def check(self) -> None:
        connection = Connection(self.port)
        try:
            self.ready = connection.ask("GET", "/readyz", "", b"")[0] == 200
        except OSError:
            self.ready = False
        finally:
            connection.close()


class Balancer(AbstractContextManager["Balancer"]):
    """Knows the nodes, and asks each for `/readyz` twenty times a second.

    With `asks=False` it sends requests to nodes that are not ready, too.
    """

    def __init__(self, *, asks: bool = True) -> None:
        self.asks = asks
        self._nodes: dict[str, Node] = {}
        self._lock = threading.Lock()
        self._turns = count()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._check)
        self.failures: list[str] = []
        self.unavailable: list[str] = []  # those with 503 that do not say when to try again

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def add(self, root: str) -> None:
        """Add a node, and wait until it is ready."""
        self._nodes[root] = node = Node(root)
        until(lambda: node.ready)

    def ready(self) -> list[str]:
        """Return the roots of the nodes that are ready."""
        return [root for root, node in self._nodes.items() if node.ready]

    def take_out(self, root: str) -> None:
        """Send no further request to the node, and wait for those that it has."""
        node = self._nodes[root]
        with self._lock:
            node.taken_out = True
        until(lambda: not node.in_flight)

    def remove(self, root: str) -> None:
        del self._nodes[root]

    def _check(self) -> None:
        while not self._closing.wait(CHECK_SECONDS):
            for node in tuple(self._nodes.values()):
                node.check()

    @contextmanager
    def chosen(self) -> Iterator[Node]:
        """Yield the next node in turn that is ready. Raises ConnectionError if there is none."""
        with self._lock:
            there = [node for node in tuple(self._nodes.values()) if not node.taken_out]
            nodes = [node for node in there if node.ready or not self.asks]
            if not nodes:
                self.failures.append("no node is ready")
                raise ConnectionError(self.failures[-1])
            node = nodes[next(self._turns) % len(nodes)]
            node.in_flight += 1
        try:
            yield node
        finally:
            with self._lock:
                node.in_flight -= 1


class Balanced:
    """A client of the balancer, with a kept connection to each node."""

    def __init__(self, balancer: Balancer) -> None:
        self._balancer = balancer
        self._connections: dict[int, Connection] = {}

    def ask(self, method: str, target: str, token: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body. Raises OSError, and notes the failure, if the answer is incomplete."""
        with self._balancer.chosen() as node:
            connection = self._connections.setdefault(node.port, Connection(node.port))
            try:
                status, content = connection.ask(method, target, token, body)
            except OSError as error:
                connection.close()
                self._balancer.failures.append(f"{method} {target} at port {node.port}: {error!r}")
                raise
        if status == UNAVAILABLE and b"retry-after" not in connection.fields:
            self._balancer.unavailable.append(f"{method} {target}")
        return status, content

    def close(self) -> None:
        """Close all connections; further requests open others."""
        for connection in self._connections.values():
            connection.close()


class Clients:
    """Threads that run until the block ends."""

    def __init__(self) -> None:
        self._gone = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        for thread in self._threads:
            thread.join()


class Traffic(Clients):
    """Clients that write and clients that read, each with a token, until the block ends."""

    def __init__(self, balancer: Balancer, accounts: Sequence[Account], *, patient: bool = False) -> None:
        """`patient`: 503 is no fault."""
        super().__init__()
        self._balancer = balancer
        self._patient = patient
        self.callers = [
            Caller(at, account, "load", {}, patient=patient, pause=PAUSE) for at, account in enumerate(accounts)
        ]
        self.odd: list[str] = []
        self.read = 0
        self._threads = [
            *(threading.Thread(target=self._write, args=(each,)) for each in self.callers),
            *(threading.Thread(target=self._read, args=(account,)) for account in accounts[:2]),
        ]

    @property
    def acknowledged(self) -> int:
        """The number of acknowledged writes."""
        return sum(effect.acknowledged for caller in self.callers for effect in tuple(caller.effects))

    def go_on(self, writes: int = 100, reads: int = 100) -> None:
        """Wait until some more writes are acknowledged and some more reads answered."""
        written, read = self.acknowledged + writes, self.read + reads
        until(lambda: self.acknowledged >= written and self.read >= read)

    def _write(self, caller: Caller) -> None:
        with closing(Balanced(self._balancer)) as client:
            caller.work(client, self._gone)

    def _read(self, account: Account) -> None:
        with closing(Balanced(self._balancer)) as client:
            self._read_over(client, account)

    def _read_over(self, client: Balanced, account: Account) -> None:
        for turn in count():
            if self._gone.wait(PAUSE):
                return
            path = f"/api/v1/{READS[turn % len(READS)]}".format(artist=account.artist)
            try:
                status, content = client.ask("GET", path, account.token, b"")
            except OSError:
                self._gone.wait(0.01)
                continue
            self.read += status == 200
            if status != 200 and not (self._patient and status == UNAVAILABLE):
                self.odd.append(f"GET {path}: {status} {content!r}")


class Greedy(Clients):
    """Clients without a token that spend the limit of their address at all nodes, as far as they are let."""

    def __init__(self, balancer: Balancer, clients: int = 3) -> None:
        super().__init__()
        self._balancer = balancer
        self._let = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._spend) for _ in range(clients)]
        self.allowed = 0
        self.refused = 0
        self.failed = 0

    def let(self, allowed: int) -> None:
        """Let the clients go on until this many of their requests are allowed."""
        self._let = allowed

    def spend(self, allowed: int) -> None:
        """Let the clients go on, and wait until this many of their requests are allowed."""
        self.let(allowed)
        until(lambda: self.allowed >= allowed)

    def spend_all(self) -> None:
        """Let the clients go on until nothing is left."""
        self._let, before = 1_000_000, self.refused
        until(lambda: self.refused >= before + 50)

    def _spend(self) -> None:
        with closing(Balanced(self._balancer)) as client:
            while not self._gone.is_set():
                if self.allowed >= self._let:
                    client.close()  # the node would, after a while
                    self._gone.wait(0.01)
                    continue
                try:
                    status, _ = client.ask("GET", "/api/v1/albums", "", b"")
                except OSError:
                    status = 0
                with self._lock:
                    self.allowed += status == 200
                    self.refused += status == TOO_MANY
                    self.failed += status == UNAVAILABLE
                if status != 200:
                    self._gone.wait(0.01)
