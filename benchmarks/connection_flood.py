"""Effect of a flood of connections on an honest client: its answers during the flood and in the second after it.

    python benchmarks/connection_flood.py [--seconds 8] [--connections 2000] [--rate 2000] [--late 1]

Runs the real program with CONNECTIONS connection slots. Another process opens RATE connections a second, half of which
send half a request, and closes none of them. Exit 1 if the honest client fails, or is late after the flood.
"""

import argparse
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from musicsvc.server.process import open_files

sys.path.insert(0, str(Path(__file__).parent))
from network_server import MEBIBYTE, Server, Watch, output_of, percentiles, running

HELD = 8000  # connections that the flood holds at once
HALF = b"GET /api/v1/albums HTTP/1.1\r\nHost: localhost\r\nX-Half: "
RECENT = 100  # connections ago: by then it is established
MOST_SECONDS = 1.0


def main() -> None:
    """Measure; exit 1 if the guarantee is broken. With a port and a rate, act as the flood."""
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        flood(int(sys.argv[1]), int(sys.argv[2]))
        return
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8.0)
    options.add_argument("--connections", type=int, default=2000)
    options.add_argument("--rate", type=int, default=2000)
    options.add_argument("--late", type=float, default=MOST_SECONDS, help="seconds that an honest answer may take")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"max_connections": given.connections}
        with running(Path(folder) / "flooded", settings, tls=False) as server:
            sys.exit(measure(server, given))


def measure(server: Server, given: argparse.Namespace) -> int:
    """Print answers alone, in the flood and after it; return the number of honest requests that failed or were late."""
    alone = output_of(server.ask("honest_client.py", given.seconds / 2))
    before = server.memory
    line = [sys.executable, __file__, str(server.port), str(given.rate)]
    flooding = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    time.sleep(1)
    with Watch(server) as watch:
        within = output_of(server.ask("honest_client.py", given.seconds))
    opened, took = (float(part) for part in flooding.communicate("")[0].split())
    after = output_of(server.ask("honest_client.py", 1))
    print(f"{opened:.0f} connections in {took:.1f} s, {opened / took:.0f} a second")
    for name, found in (("alone", alone), ("in the flood", within), ("in the second after it", after)):
        print(f"  {name}: {percentiles(found['times'])}, {len(found['failures'])} failures")
    print(f"  memory: {(watch.most - before) / MEBIBYTE:.0f} MiB more")
    late = sum(each > given.late for each in after["times"])
    return 1 if late or after["failures"] or alone["failures"] else 0


def flood(port: int, rate: int) -> None:
    """Open connections until standard input ends; drop the oldest beyond the maximum."""
    open_files.raise_limit()
    held: deque[socket.socket] = deque()
    opened, began = 0, time.perf_counter()
    while not select.select([sys.stdin], [], [], 0)[0] or os.read(0, 1):
        time.sleep(max(0.0, began + opened / rate - time.perf_counter()))
        line = socket.socket()
        line.setblocking(False)  # noqa: FBT003 - the library's signature
        line.connect_ex(("127.0.0.1", port))
        held.append(line)
        opened += 1
        if opened % 2 and len(held) > RECENT:
            with suppress(OSError):
                held[-RECENT].send(HALF)
        if len(held) > HELD:
            held.popleft().close()
    print(opened, time.perf_counter() - began)


if __name__ == "__main__":
    main()
