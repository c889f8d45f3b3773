"""Effect of the worst bodies on others: /healthz beside three connections of one token that send nothing else.

    python benchmarks/large_bodies.py [--seconds 8] [--bodies 300] [--only 'integers|chunks'] [--late 0.25]

Each connection sends its next body of just below 1 MiB as soon as the last one is answered, up to the 300 a minute that
a token may send. /healthz is requested meanwhile over another connection, 50 ms after its last response. Exit 1 if a
guarantee is broken: its p99 is at most 250 ms, memory grows by at most 128 MiB. `--against` measures that checkout.
"""

import asyncio
import re
import sys
import time
from collections import Counter
from contextlib import suppress

import harness
from clients import Crowd, Stage, percentile, percentiles, raw, receive
from harness import Server, Watch

PATH = "/api/v1/messaging/messages"
SIZE = 1024 * 1024 - 64
CONNECTIONS = 3
PAUSE_SECONDS = 0.05


def array(item: bytes, count: int = SIZE) -> bytes:
    """Return a body with a conversation id that is an array of `count` items, or of as many as fit."""
    return b'{"conversation_id":[%s]}' % b",".join([item] * min(count, SIZE // (len(item) + 1) - 32))


KINDS = {
    "integers": lambda: array(b"1"),
    "deep arrays": lambda: array(b"[" * 100 + b"]" * 100),
    "members": lambda: b"{%s}" % b",".join(b'"%05x":[]' % number for number in range(SIZE // 11)),
    "floats": lambda: array(b"-1.7976931348623157e-300", 19_000),  # below the bound on values, so that all are parsed
    "objects": lambda: array(b'{"a":%s}' % (b"9" * 90), 9_500),  # the same
    "chunks": lambda: b"1\r\nx\r\n" * SIZE,
}


async def attack(stage: Stage, port: int, token: str, kind: str, most: int) -> dict[str, int]:
    """Send bodies until the end, `most` at most. Return how often there was which status."""
    body = KINDS[kind]()
    request = raw(PATH, port, token=token, method="POST", body=body)
    if kind == "chunks":
        request = request.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked", 1)
    statuses: Counter[str] = Counter()
    left = iter(range(most))

    async def one() -> None:
        for _ in left:
            with suppress(OSError, EOFError):  # it may be closed once the response is sent
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=SIZE)
                writer.write(request)
                statuses[(await reader.readline()).split(b" ")[1].decode()] += 1
                writer.close()

    stage.ready()
    await stage.run(*(one() for _ in range(CONNECTIONS)))
    return dict(statuses)


async def health(server: Server, seconds: float) -> list[float]:
    """Return the seconds of responses of /healthz."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    ends, times = time.perf_counter() + seconds, list[float]()
    while not times or time.perf_counter() < ends:
        began = time.perf_counter()
        writer.write(raw("/healthz", server.port))
        await receive(reader)
        times.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()
    return times


def main() -> int:
    """Measure each kind. Return the exit code."""
    given = harness.parser(__doc__, seconds=8.0, bodies=300, late=0.25).parse_args()
    broken = []
    with harness.place(given) as folder:
        checkout = harness.checkouts(given)[-1]
        with harness.running(checkout, harness.database(checkout, folder, "small")) as server:
            print(f"alone: {percentiles(asyncio.run(health(server, given.seconds / 2)))}", flush=True)
            with Watch(server) as watch:
                for kind in (each for each in KINDS if re.search(given.only, each)):
                    with Crowd(attack, server.port, server.token, kind, given.bodies) as crowd:
                        times = asyncio.run(health(server, given.seconds))
                        statuses = crowd.result()
                    print(f"beside {kind}: {percentiles(times)}; bodies {statuses}", flush=True)
                    if percentile(times, 99) > given.late:
                        broken.append(f"p99 of /healthz beside {kind}")
    print(f"memory: at most {watch.more:.0f} MiB more")
    return harness.say(broken + ["memory"] * (watch.more > harness.MOST_MEMORY))


if __name__ == "__main__":
    sys.exit(main())
