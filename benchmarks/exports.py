"""Export of a million rows as CSV and JSON from the real server: duration, memory, and the delay of other requests.

python benchmarks/exports.py [--tracks 1000000] [--plays 1000000] [--folder DIR]
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users

sys.path.insert(0, str(Path(__file__).parent))
import plays_world

PIECE = 1 << 16
OK = 200


def main() -> None:
    """Create the data, start the server, export, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tracks", type=int, default=1_000_000)
    options.add_argument("--plays", type=int, default=1_000_000)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "musicsvc.db").exists():
            plays_world.new(folder, plays_world.Size(given.plays, given.tracks, days=30)).close()
        url = f"sqlite:///{folder / 'musicsvc.db'}"
        token = new_token(url)
        environment = {**os.environ, "MUSICSVC_DATABASE_URL": url, "MUSICSVC_DATA_DIR": str(folder)}  # noqa: TID251 - the child's
        line = [sys.executable, "-m", "musicsvc", "serve", "--port", "0"]
        server = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own program
        try:
            measure(server, token)
        finally:
            server.terminate()
            server.wait()


def new_token(url: str) -> str:
    """Return a token of the account that manages everything."""
    now = time.time_ns() // 1000
    with opening.connect(url) as store:
        return store.write(
            lambda: tokens.create(users.by_email(plays_world.MANAGER), "export", now=now, without_access=True)[1]
        ).result()


def measure(server: subprocess.Popen[str], token: str) -> None:
    """Export everything, and send small requests meanwhile."""
    assert server.stderr is not None
    host = next(found[1] for text in server.stderr if (found := re.search(r"http://([\d.:]+)", text)))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    for name, sent in (("report", {"period": "7-days"}), ("csv", {"type": "artists", "period": "7-days"})):
        took, size = fetch(host, token, name, sent)
        print(f"{name} {sent}: {took:.1f} s, {size:,} bytes")
    for name in ("csv", "json"):
        for type_ in ("tracks", "plays"):
            before, done = memory(server.pid), threading.Event()
            waits: list[float] = []
            highest: list[dict[str, int]] = []
            others = threading.Thread(target=ask_others, args=(host, token, done, waits))
            watch = threading.Thread(target=watch_memory, args=(server.pid, done, highest))
            others.start()
            watch.start()
            took, size = fetch(host, token, name, {"type": type_, "period": "1-year"})
            done.set()
            others.join()
            watch.join()
            grown = {key: max(each[key] for each in highest) - before[key] for key in before}
            waits.sort()
            parts = ", ".join(f"{key} +{kilobytes / 1024:.1f} MB" for key, kilobytes in grown.items())
            print(f"{name} of {type_}: {took:.1f} s, {size:,} bytes, {parts}")
            middle, worst = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
            print(f"  others meanwhile: median {middle:.1f} ms, p99 {worst:.1f} ms", flush=True)


def fetch(host: str, token: str, name: str, sent: dict[str, str]) -> tuple[float, int]:
    """Return the seconds and bytes of an export."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(host)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", f"{INSIGHTS}/export/{name}", json.dumps(sent), headers)
    answer = connection.getresponse()
    assert answer.status == OK, answer.read()
    size = 0
    while piece := answer.read(PIECE):
        size += len(piece)
    connection.close()
    return time.perf_counter() - began, size


def ask_others(host: str, token: str, done: threading.Event, waits: list[float]) -> None:
    """Request a track's figures over and over; record the milliseconds of each answer."""
    connection = http.client.HTTPConnection(host)
    while not done.is_set():
        began = time.perf_counter()
        connection.request("GET", f"{INSIGHTS}/tracks/1", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == OK
        waits.append((time.perf_counter() - began) * 1000)
        time.sleep(0.02)


def watch_memory(pid: int, done: threading.Event, seen: list[dict[str, int]]) -> None:
    """Sample the memory of the process ten times a second."""
    while not done.is_set():
        seen.append(memory(pid))
        time.sleep(0.1)


def memory(pid: int) -> dict[str, int]:
    """Return the kilobytes of anonymous memory and of mapped files (Linux)."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    return {
        name: int(re.findall(rf"{key}:\s+(\d+)", text)[0]) for name, key in (("own", "RssAnon"), ("mapped", "RssFile"))
    }


if __name__ == "__main__":
    main()
