"""Speed of recording plays over HTTP: wall time of `POST /plays` with 1,000 plays, one request after the other.

    python benchmarks/post_plays.py

Starts a server on a temporary database with 20,000 tracks; the plays are those of 40,000 listeners in the last day,
each with its listener's name and its time as text, as a client would send them.
"""

import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from musicsvc.clock import DAY, Clock, isoformat
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sqlite import files
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.schema import schema

TRACKS, LISTENERS, BATCH, REQUESTS = 20_000, 40_000, 1_000, 60


def main() -> None:
    """Start the server, send, print."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "musicsvc.db"
        files.create(file)
        schema.upgrade(f"sqlite:///{file}")
        with opening.connect(f"sqlite:///{file}") as store:
            token = store.write(_fill).result()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (Path(folder) / "config.toml").write_text(f'database_url = "sqlite:///{file}"\n')
        command = [sys.executable, "-m", "musicsvc", "-q", "--config", f"{folder}/config.toml", "serve"]
        server = subprocess.Popen([*command, "--port", str(port)])  # noqa: S603 - our own program
        try:
            _measure(_connected(port), token, server.pid)
        finally:
            server.terminate()
            server.wait()


def _fill() -> str:
    bulk.insert(Artist, ("id", "name", "created_at"), [(1, "Artist", 1)])
    bulk.insert(Track, ("id", "name", "duration", "created_at"), [(n, "Track", 1, 1) for n in range(1, TRACKS + 1)])
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(n, 1, 0) for n in range(1, TRACKS + 1)])
    user = users.create("reporter@label.test", now=Clock().now())
    api_access.grant(user, plays=True, now=Clock().now())
    return tokens.create(user, "benchmark", now=Clock().now())[1]


def _connected(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(100):
        try:
            connection.connect()
        except OSError:
            time.sleep(0.1)
        else:
            return connection
    raise SystemExit("The server does not answer.")


def _batches() -> Iterator[bytes]:
    chance = random.Random(1)  # noqa: S311 - no secrets
    weights = list(accumulate(1 / rank for rank in range(1, TRACKS + 1)))
    now = Clock().now()
    for _ in range(REQUESTS):
        tracks = chance.choices(range(1, TRACKS + 1), cum_weights=weights, k=BATCH)
        plays = [
            {
                "track_id": track,
                "played_at": isoformat(now - int(chance.random() * DAY)),
                "listener": f"listener {int(chance.random() * LISTENERS)}",
                "duration_ms": 200_000,
            }
            for track in tracks
        ]
        yield json.dumps({"plays": plays}).encode()


def _spent(pid: int) -> float:
    """CPU seconds of a process, if the system reports them."""
    status = Path(f"/proc/{pid}/stat")
    if not status.exists():
        return 0.0
    user, system = status.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _measure(connection: http.client.HTTPConnection, token: str, pid: int) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    times = []
    spent = _spent(pid)
    for body in _batches():
        began = time.perf_counter()
        connection.request("POST", "/api/v1/plays", body, headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        times.append(time.perf_counter() - began)
        assert answer.status == http.HTTPStatus.CREATED, found
        assert found["accepted"] + found["repeated"] == BATCH
    spent = _spent(pid) - spent
    rates = sorted(BATCH / spent for spent in times)
    print(f"POST of {BATCH:,}: {statistics.median(rates):,.0f} plays/s ({rates[0]:,.0f} … {rates[-1]:,.0f})")
    if spent:
        print(f"of the server's CPU time alone: {BATCH * REQUESTS / spent:,.0f} plays/s")


if __name__ == "__main__":
    main()
