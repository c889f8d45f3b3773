"""Real players, which tests/clients/install installs: Supysonic, and a queue that liblistenbrainz sends."""

import http.cookiejar
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.generated_clients import CLIENTS, PYTHON, execute
from tests.support.preloaded import given_environment
from tests.support.program import PATIENCE, until
from tests.support.reserved_port import reserved_port

NAME, PASSWORD = "ben", "nine silent songs"
CONFIGURATION = """[base]
database_uri = sqlite:///{folder}/supysonic.db
[webapp]
cache_dir = {folder}/cache
[daemon]
socket = {folder}/socket
[listenbrainz]
api_url = {address}
"""
Heard = tuple[str, str, int]  # artist, title, Unix seconds


def require() -> None:
    """Skip the test if the players are not installed."""
    if not all((PYTHON / name).exists() for name in ("supysonic-server", "waitress-serve")):
        pytest.skip("the players are not installed (tests/clients/install)")


class Supysonic:
    """A Supysonic that runs, with files of silence by one artist, and a user of it."""

    def __init__(self, root: str) -> None:
        self._root = root
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))

    def link(self, token: str) -> str:
        """Type a token into the settings of the user, and return the page that follows."""
        self._open("user/login", urlencode({"user": NAME, "password": PASSWORD}).encode())
        return self._open(f"user/me/listenbrainz/link?{urlencode({'token': token})}").decode()

    def songs(self) -> dict[str, str]:
        """Return the id of each song, by its title."""
        found = self._ask("search3", query="", songCount=99)
        return {song["title"]: song["id"] for song in found["searchResult3"]["song"]}

    def scrobble(self, song: str, at: int, *, submission: bool = True) -> None:
        self._ask("scrobble", id=song, time=at * 1000, submission=str(submission).lower())

    def _ask(self, method: str, **parameters: Any) -> Any:
        known = {"u": NAME, "p": PASSWORD, "v": "1.12.0", "c": "tests", "f": "json"}
        answer = json.loads(self._open(f"rest/{method}?{urlencode(known | parameters)}"))["subsonic-response"]
        assert answer["status"] == "ok", answer
        return answer

    def answers(self) -> bool:
        """Return whether it accepts connections."""
        with suppress(urllib.error.URLError):
            return bool(self._open("user/login"))
        return False

    def _open(self, path: str, data: bytes | None = None) -> bytes:
        with self._opener.open(f"{self._root}/{path}", data, timeout=PATIENCE) as answer:
            body: bytes = answer.read()
            return body


@contextmanager
def supysonic(folder: Path, address: str, artist: str, titles: Iterable[str]) -> Iterator[Supysonic]:
    """Run Supysonic in a folder, with the address of the service in its configuration."""
    require()
    music = folder / "music"
    music.mkdir(parents=True)
    execute(folder, PYTHON / "python", CLIENTS / "silence.py", str(music), artist, *titles)
    (folder / "supysonic.conf").write_text(CONFIGURATION.format(folder=folder, address=address))
    command = [str(PYTHON / "supysonic-cli")]
    execute(folder, *command, "user", "add", NAME, "-p", PASSWORD)
    execute(folder, *command, "folder", "add", "music", str(music))
    execute(folder, *command, "folder", "scan", "--foreground")
    with reserved_port() as port, (folder / "out").open("wb") as out:
        options = ("-S", "waitress", "-h", "127.0.0.1", "-p", str(port))
        server: list[Path | str] = [PYTHON / "supysonic-server", *options]
        with subprocess.Popen(server, cwd=folder, env=given_environment(), stdout=out, stderr=out) as process:
            try:
                running = Supysonic(f"http://127.0.0.1:{port}")
                until(lambda: running.answers() or process.poll() is not None)
                assert process.poll() is None, (folder / "out").read_text("utf-8")
                yield running
            finally:
                process.kill()


class OfflineQueue:
    """A queue of listens; `send` sends a part of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, listens: Sequence[Heard]) -> None:
        self.begin(listens)
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == [{"status": "ok"}, len(listens)]

    def begin(self, listens: Sequence[Heard]) -> None:
        """Send a part without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(listens) + "\n")
        self._process.stdin.flush()


@contextmanager
def offline_queue(address: str, token: str) -> Iterator[OfflineQueue]:
    """Run a program that sends listens with liblistenbrainz, until the end of the block."""
    require()
    command: list[Path | str] = [PYTHON / "python", CLIENTS / "offline_queue.py", address, token]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=given_environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield OfflineQueue(process)
        finally:
            process.kill()
