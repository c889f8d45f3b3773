"""Effect of the worst bodies on others: /healthz beside three connections of one token that send nothing else.

    python benchmarks/large_bodies.py [--seconds 8] [--bodies 300] [--kinds integers,chunks] [--late 0.25]

Runs the real program with one worker and the fixtures. Each connection sends its next body of just below 1 MiB as soon
as the last one is answered, up to the 300 a minute that a token may send. /healthz is requested meanwhile over another
connection, 50 ms after its last answer. Exit 1 if a guarantee is broken: its p99 is at most 250 ms, memory grows by at
most 128 MiB. To measure another version, copy this file to its benchmarks/, and run it there in the folder above with
PYTHONPATH=.
"""

import argparse
import http.client
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from collections.abc import Callable

from network_server import MEBIBYTE, MOST_MEMORY, MOST_SECONDS, Server, Watch, percentile, percentiles, running

PATH = "/api/v1/messaging/messages"
SIZE = 1024 * 1024 - 64
CONNECTIONS = 3
PAUSE_SECONDS = 0.05


def array(item: bytes, count: int = SIZE) -> bytes:
    """Return a body with a conversation id that is an array of `count` items, or of as many as fit."""
    return b'{"conversation_id":[%s]}' % b",".join([item] * min(count, SIZE // (len(item) + 1) - 32))


def members() -> bytes:
    """Return a body of many members, each with an array."""
    return b"{%s}" % b",".join(b'"%05x":[]' % number for number in range(SIZE // 11))


def chunks() -> bytes:
    """A body in chunks of one byte."""
    return b"1\r\nx\r\n" * SIZE


KINDS: dict[str, Callable[[], bytes]] = {
    "integers": lambda: array(b"1"),
    "deep arrays": lambda: array(b"[" * 100 + b"]" * 100),
    "members": members,
    "floats": lambda: array(b"-1.7976931348623157e-300", 19_000),  # below the bound on values, so that all are parsed
    "objects": lambda: array(b'{"a":%s}' % (b"9" * 90), 9_500),  # the same
    "chunks": chunks,
}


class Attack:
    """Connections that send one body after the other, and the statuses of the answers."""

    def __init__(self, server: Server, kind: str, most: int) -> None:
        framing = "Transfer-Encoding: chunked" if kind == "chunks" else "Content-Length: {}"
        self._body = KINDS[kind]()
        lines = [f"POST {PATH} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.token}"]
        lines += ["Content-Type: application/json", framing.format(len(self._body)), "", ""]
        self._head = "\r\n".join(lines).encode()
        self._port = server.port
        self._left = most
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send) for _ in range(CONNECTIONS)]
        self.statuses: list[int] = []

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def busy(self) -> bool:
        """Return whether bodies are left to send."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Stop sending, and wait for outstanding answers."""
        with self._lock:
            self._left = 0
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        connection = None
        while self._take():
            connection = connection or socket.create_connection(("127.0.0.1", self._port), timeout=60)
            answer = b""
            try:
                connection.sendall(self._head + self._body)
                answer = connection.recv(65536)
            except ConnectionError:  # it may be closed once the answer is sent
                pass
            self.statuses.append(int(answer.split(b" ")[1]) if answer else 0)
            if not answer or b"Connection: close" in answer:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0


def main() -> None:
    """Measure each kind; exit 1 if the guarantee is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8.0)
    options.add_argument("--bodies", type=int, default=300)
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--late", type=float, default=MOST_SECONDS, help="seconds that the p99 may take")
    given = options.parse_args()
    broken = []
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "server", {}, tls=False) as server:
        print(f"alone: {percentiles(health(server, given.seconds / 2, lambda: True))}", flush=True)
        before = server.memory
        with Watch(server) as watch:
            for kind in given.kinds.split(","):
                attack = Attack(server, kind, given.bodies)
                attack.start()
                times = health(server, given.seconds, attack.busy)
                attack.stop()
                print(f"beside {kind}: {percentiles(times)}; bodies {dict(Counter(attack.statuses))}", flush=True)
                if percentile(times, 99) > given.late:
                    broken.append(f"p99 of /healthz beside {kind}")
    more = watch.most - before
    print(f"memory: {before / MEBIBYTE:.0f} MiB, at most {more / MEBIBYTE:.0f} MiB more")
    if more > MOST_MEMORY:
        broken.append("memory")
    for each in broken:
        print(f"broken: {each}")
    sys.exit(1 if broken else 0)


def health(server: Server, seconds: float, busy: Callable[[], bool]) -> list[float]:
    """Return the times of /healthz, for some seconds or until `busy` is false."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    began = time.perf_counter()
    times: list[float] = []
    while not times or (time.perf_counter() < began + seconds and busy()):
        asked = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        times.append(time.perf_counter() - asked)
        time.sleep(PAUSE_SECONDS)
    connection.close()
    return times


if __name__ == "__main__":
    main()
