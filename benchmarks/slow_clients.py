"""Effect of slow clients: an honest client's answers without and with a thousand of them, memory, disconnections.

    python benchmarks/slow_clients.py [--clients 1000] [--seconds 40] [--patience 1.0] [--transport both]

Runs the real program with one worker and the fixtures, first with plain HTTP, then with TLS. `--patience` makes all
timeouts shorter, to a second at least. Exit 1 if a guarantee is broken: the honest p99 is at most 250 ms, memory grows
by at most 128 MiB, each slow client is disconnected within its timeout.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from network_server import (
    MEBIBYTE,
    MOST_MEMORY,
    MOST_SECONDS,
    TRANSPORTS,
    Server,
    Watch,
    output_of,
    percentile,
    percentiles,
    running,
)

DEADLINES = {"handshake": 5.0, "head": 10.0, "body": 15.0, "write": 30.0, "keepalive": 15.0}
# Allowed beyond a timeout: the two seconds in which the rest of a request is still read, and the time to notice.
GRACE_SECONDS = {"handshake": 1.5, "head": 3.5, "body": 3.5, "reader": 3.5}


def main() -> None:
    """Measure both; exit 1 if a guarantee is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=40.0)
    options.add_argument("--patience", type=float, default=1.0)
    options.add_argument("--kinds", default=",".join(GRACE_SECONDS))
    options.add_argument("--transport", choices=TRANSPORTS, default="both")
    options.add_argument("--late", type=float, default=MOST_SECONDS, help="seconds that the honest p99 may take")
    given = options.parse_args()
    times = {name: max(1.0, seconds * given.patience) for name, seconds in DEADLINES.items()}
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        for tls in TRANSPORTS[given.transport]:
            settings = {f"{name}_timeout": seconds for name, seconds in times.items()}
            with running(Path(folder) / f"tls-{tls}", settings, tls=tls) as server:
                print(f"{'TLS' if tls else 'plain HTTP'}:")
                broken += measure(server, given, times, tls=tls)
    for each in broken:
        print(f"broken: {each}")
    sys.exit(1 if broken else 0)


def measure(server: Server, given: argparse.Namespace, times: dict[str, float], *, tls: bool) -> list[str]:
    """Measure honest answers without and with slow clients; return the broken guarantees."""
    alone = output_of(server.ask("honest_client.py", min(10.0, given.seconds / 2)))
    before = server.memory
    crowd = server.ask("slow_crowd.py", given.clients, given.seconds + 1, given.kinds)
    assert crowd.stdout is not None
    with Watch(server) as watch:
        come = int(crowd.stdout.readline())
        beside = output_of(server.ask("honest_client.py", given.seconds))
        slow = output_of(crowd)
    print(f"  honest client alone: {percentiles(alone['times'])}")
    print(f"  beside {come} slow ones: {percentiles(beside['times'])}")
    more = watch.most - before
    print(f"  memory: {before / MEBIBYTE:.0f} MiB, at most {more / MEBIBYTE:.0f} MiB more", flush=True)
    broken = [f"the honest client failed: {failure}" for failure in alone["failures"] + beside["failures"]]
    if percentile(beside["times"], 99) > given.late:
        broken.append("honest p99")
    if more > MOST_MEMORY:
        broken.append("memory")
    limits = {"head": times["head"], "body": times["body"], "reader": times["write"]}
    limits["handshake"] = times["handshake"] if tls else times["head"]
    for kind, limit in ((kind, limits[kind]) for kind in given.kinds.split(",")):
        lives = slow["lives"].get(kind, [])
        answers = ", ".join(
            f"{status or 'no answer'} {count}" for status, count in slow["answers"].get(kind, {}).items()
        )
        if not lives:
            broken.append(f"no {kind} was cut")
            continue
        print(f"  {kind}: {len(lives)} cut after {min(lives):.1f} to {max(lives):.1f} s (limit {limit:g}); {answers}")
        if max(lives) > limit + GRACE_SECONDS[kind]:
            broken.append(f"a slow {kind} lived {max(lives):.1f} s")
    return broken


if __name__ == "__main__":
    main()
