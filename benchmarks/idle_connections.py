"""Cost of 5,000 idle connections: memory, and the answers to an honest client beside them.

    python benchmarks/idle_connections.py [--connections 5000] [--seconds 20] [--transport both]

Runs the real program with one worker, first with plain HTTP, then with TLS. The keep-alive timeout is longer than the
default of 15 seconds, so that all connections are open at once. Exit 1 if a guarantee is broken: all stay open, the
honest p99 is at most 250 ms, and with plain HTTP memory grows by at most 128 MiB.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from musicsvc.server.process import open_files

sys.path.insert(0, str(Path(__file__).parent))
from network_server import (
    MEBIBYTE,
    MOST_MEMORY,
    MOST_SECONDS,
    TRANSPORTS,
    Server,
    output_of,
    percentile,
    percentiles,
    running,
)

KEPT_SECONDS = 600


def main() -> None:
    """Measure; exit 1 if a guarantee is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--connections", type=int, default=5000)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--transport", choices=TRANSPORTS, default="both")
    options.add_argument("--late", type=float, default=MOST_SECONDS, help="seconds that the honest p99 may take")
    given = options.parse_args()
    open_files.raise_limit()
    if open_files.max_connections() < given.connections:
        sys.exit(f"the descriptor limit (ulimit -Hn) leaves room for {open_files.max_connections()} connections only")
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        for tls in TRANSPORTS[given.transport]:
            with running(Path(folder) / f"tls-{tls}", {"keepalive_timeout": KEPT_SECONDS}, tls=tls) as server:
                print(f"{'TLS' if tls else 'plain HTTP'}:")
                broken += measure(server, given, tls=tls)
    for each in broken:
        print(f"broken: {each}")
    sys.exit(1 if broken else 0)


def measure(server: Server, given: argparse.Namespace, *, tls: bool) -> list[str]:
    """Measure honest answers without and with the idle connections; return the broken guarantees."""
    alone = output_of(server.ask("honest_client.py", min(10.0, given.seconds / 2)))
    before = server.memory
    crowd = server.ask("idle_crowd.py", given.connections)
    assert crowd.stdout is not None
    come = int(crowd.stdout.readline())
    more = server.memory - before
    beside = output_of(server.ask("honest_client.py", given.seconds))
    left = int(crowd.communicate("")[0])
    print(f"  honest client alone: {percentiles(alone['times'])}")
    print(f"  beside {come} idle connections: {percentiles(beside['times'])}")
    print(f"  memory: {more / MEBIBYTE:.0f} MiB more, {more / come / 1024:.1f} KiB for each", flush=True)
    broken = [f"the honest client failed: {failure}" for failure in alone["failures"] + beside["failures"]]
    if left < given.connections:
        broken.append(f"{given.connections - left} were not kept")
    if percentile(beside["times"], 99) > given.late:
        broken.append("honest p99")
    if not tls and more > MOST_MEMORY:
        broken.append("memory")
    return broken


if __name__ == "__main__":
    main()
