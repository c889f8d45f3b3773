"""An account that invents plays: how many of its own plays are accepted, and what they do to the figures of an artist.

    python benchmarks/invented_plays.py [--plays 10000]

A fresh account with API access reports plays of one track over HTTP, in batches of 1,000: first all within ten seconds,
each with an id of its own, then another account one in each half minute before now. Then the plays of the second one
are withdrawn.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from network_server import Server, running

from musicsvc.clock import SECOND, Clock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import TrackArtist
from musicsvc.store.seeding import plays

BATCH = 1_000
ACCOUNTS = ("burst@mix.test", "spread@mix.test")


def main() -> None:
    """Start the server, cheat, print."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--plays", type=int, default=10_000)
    count = wanted.parse_args().plays
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "service"
        with running(home, {}, tls=False, fill=_fill) as server:
            artist, track, values = server.filled
            now = Clock().now() // SECOND - 1
            ways = {"within 10 seconds": 10 / count, "one in each half minute": 30.0}
            for (way, apart), token in zip(ways.items(), values, strict=True):
                before = _period(server, artist)
                began = time.perf_counter()
                accepted = _report(server, token, track, [now - at * apart for at in range(count)])
                took = time.perf_counter() - began
                after = _period(server, artist)
                grown = 100 * (after - before) / before
                print(f"{way}: {accepted:,} of {count:,} plays accepted in {took:.1f} s;", end=" ")
                print(f"the artist's plays of 30 days: {before:,} → {after:,} (+{grown:,.1f} %)")
            began = time.perf_counter()
            print(_withdraw(home), f"in {time.perf_counter() - began:.1f} s;", end=" ")
            print(f"the artist's plays of 30 days: {_period(server, artist):,}")


def _fill(store: Store) -> tuple[int, int, list[str]]:
    """Add plays and two accounts. Return an artist, a track of it, and the tokens of the accounts."""
    now = Clock().now()

    def fill() -> tuple[int, int, list[str]]:
        plays.load(now=now)
        track, artist = TrackArtist.select(TrackArtist.track, TrackArtist.artist).tuples().first()
        fresh = [users.create(email, api_access=True, now=now) for email in ACCOUNTS]
        return artist, track, [tokens.create(user, "benchmark", now=now)[1] for user in fresh]

    return store.write(fill).result()


def _report(server: Server, token: str, track: int, times: list[float]) -> int:
    """Report plays at these times. Return the number of accepted ones."""
    accepted = 0
    for number, start in enumerate(range(0, len(times), BATCH)):
        body = [
            {"track_id": track, "played_at": at, "client_id": f"{number}.{index}"}
            for index, at in enumerate(times[start : start + BATCH])
        ]
        accepted += _ask(server, token, "POST", "plays", {"plays": body})["accepted"]
    return accepted


def _period(server: Server, artist: int) -> int:
    found = _ask(server, server.token, "GET", f"producer-intelligence/insights/artists/{artist}")
    return int(found["data"]["plays"]["period"])


def _ask(server: Server, token: str, method: str, path: str, body: object = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    assert answer.status in {http.HTTPStatus.OK, http.HTTPStatus.CREATED}, found
    return found


def _withdraw(home: Path) -> str:
    """Withdraw the plays of the second account. Return the last line that the command prints."""
    command = [sys.executable, "-m", "musicsvc", "plays", "withdraw", ACCOUNTS[1], "--yes"]
    variables = {**os.environ, "MUSICSVC_DATA_DIR": str(home)}  # noqa: TID251 - the child's
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return done.stderr.splitlines()[-1].removesuffix(".")


if __name__ == "__main__":
    main()
