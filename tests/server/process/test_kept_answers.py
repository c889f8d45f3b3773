"""kill -9 of the server: a client that repeats a request with its key until it gets an answer causes one change."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.models import KeptAnswer, Playlist
from tests.support.program import Program, until
from tests.support.serving import person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
ROOT = Path(__file__).resolve().parents[3]
CLIENTS, KILLS, BETWEEN = 6, 3, 8  # answers between two kills


class Crowd:
    """Clients of one account, two for each key, that send each request until it is answered."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.answers: dict[str, list[bytes]] = defaultdict(list)
        self.odd: list[object] = []
        self.ends = threading.Event()
        self.port = 0

    def work(self, number: int) -> None:
        turn = 0
        while not self.ends.is_set():
            turn += 1
            name = f"{number // 2}-{turn}"
            while not self.ends.is_set() and not self._send(name):
                self.ends.wait(0.02)

    def _send(self, name: str) -> bool:
        """Return whether the request was answered."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                "POST", "/api/v1/playlists", json.dumps({"name": name}), headers | {"Idempotency-Key": name}
            )
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 200:
            self.answers[name].append(body)
        elif answer.status not in {409, 503}:
            self.odd.append((name, answer.status, body))
        return answer.status == 200

    @property
    def answered(self) -> int:
        return sum(map(len, tuple(self.answers.values())))


@pytest.mark.on_both
def test_a_request_has_one_effect_whenever_the_server_is_killed(
    tmp_path: Path, store_url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_LIMITS__TOKEN", "1000000/minute")
    with opening.connect(store_url) as store:
        _, token = person(store, Clock(), "ann@label.test")
    crowd, chance = Crowd(token), Random(seed)
    threads = [threading.Thread(target=crowd.work, args=(number,)) for number in range(CLIENTS)]
    for turn in range(KILLS + 1):
        with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
            crowd.port = int(program.root.rpartition(":")[2])
            for thread in threads if turn == 0 else ():
                thread.start()
            before = crowd.answered + BETWEEN + chance.randrange(BETWEEN)
            until(lambda before=before: crowd.answered >= before)  # type: ignore[misc]
            if turn == KILLS:
                crowd.ends.set()
                for thread in threads:
                    thread.join()
            else:
                os.killpg(program.process.pid, signal.SIGKILL)
    with opening.connect(store_url) as store:
        names = [row.name for row in store.read(lambda: list(Playlist.select())).result()]
        kept = store.read(lambda: {row.key: bytes(row.answer) for row in KeptAnswer.select()}).result()
    assert crowd.odd == []
    assert len(names) == len({*names})
    assert {*crowd.answers} <= {*names} == {*kept}
    assert {name: {*bodies} for name, bodies in crowd.answers.items()} == {name: {kept[name]} for name in crowd.answers}
    assert max(map(len, crowd.answers.values())) > 1


@pytest.mark.only_on("sqlite")
def test_a_request_that_is_killed_before_any_of_its_steps_can_be_sent_again(store_url: str, *, long: bool) -> None:
    with opening.connect(store_url) as store:
        _, token = person(store, Clock(), "ann@label.test")
    command = [sys.executable, "-m", "tests.server.request.killed_keys", store_url, token, "1" if long else "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    killed, executed, others = map(int, done.stdout.split()[-3:])
    assert (killed > 10, executed > 0, others > 0) == (True, True, True), done.stdout
