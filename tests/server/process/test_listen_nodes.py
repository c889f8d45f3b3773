"""Two nodes on one PostgreSQL: listens sent to one count once as soon as their track is created on the other."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import SECOND, Clock
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PendingListen, Play
from tests.faults.outages import Database, ask
from tests.support.postgres import MissingError
from tests.support.program import Program, until
from tests.support.undoing import require_sound

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
ARTIST = "Ann Example"
HEARD = {"Morning": 3, "Noon": 5, "Evening": 7}


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    try:
        made = Database(accounts=0)
    except MissingError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", made.url)
    yield made
    made.close()


class Node:
    """A server with a data folder of its own, and the tokens of a person who listens and manages."""

    def __init__(self, folder: Path, made: tuple[str, str]) -> None:
        folder.mkdir()
        self._program = Program(folder, "serve", "--port", "0").__enter__()
        self._port = int(self._program.root.rpartition(":")[2])
        self._token, self._player = made

    def kill(self) -> None:
        os.killpg(self._program.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._program.__exit__()

    def send(self, listens: list[dict[str, Any]]) -> None:
        answer = ask(
            self._port, "POST", "/1/submit-listens", self._player, {"listen_type": "import", "payload": listens}
        )
        assert (answer.status, answer.body) == (200, b'{"status":"ok"}')

    def api(self, method: str, path: str, body: object = None) -> Any:
        answer = ask(self._port, method, f"/api/v1/{path}", self._token, body)
        assert answer.status in {200, 201}, answer
        return json.loads(answer.body)

    def create(self, title: str, artist: int) -> int:
        body = {"name": title, "duration": 1000, "artists": [artist]}
        return int(self.api("POST", "tracks", body)["track"]["id"])

    def plays(self, artist: int) -> dict[str, int]:
        """Return the plays of the tracks of the artist that were played."""
        rows = self.api("GET", f"producer-intelligence/insights/artists/{artist}")["data"]["top_tracks"]
        return {row["name"]: row["plays"]["total"] for row in rows if row["plays"]["total"]}


def make_person(database: Database) -> tuple[str, str]:
    def make() -> tuple[str, str]:
        now = Clock().now()
        user = users.create("ann@label.test", now=now)
        api_access.grant(user, now=now)
        return tokens.create(user, "test", now=now)[1], tokens.create(user, "player", scope="listen", now=now)[1]

    with opening.connect(database.url) as store:
        return store.write(make).result()


@pytest.fixture
def nodes(folder: Path, database: Database) -> Iterator[list[Node]]:
    made = make_person(database)
    started = [Node(folder / name, made) for name in ("one", "other")]
    yield started
    for node in started:
        node.close()


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with opening.connect(database.url) as opened:
        yield opened


def await_plays(store: Store, number: int) -> None:
    """Wait until this many plays are counted, which takes at most 5 seconds."""
    until(lambda: store.read(Play.select().count).result() == number, seconds=5)


def test_listens_of_one_node_count_once_when_the_other_creates_their_track(store: Store, nodes: list[Node]) -> None:
    one, other = nodes
    last = Clock().now() // SECOND - 600
    titles = [title for title, number in HEARD.items() for _ in range(number)]
    listens = [
        {"listened_at": last - 60 * place, "track_metadata": {"artist_name": ARTIST, "track_name": title}}
        for place, title in enumerate(titles)
    ]
    one.send(listens)
    artist = int(other.api("POST", "artists", {"name": ARTIST})["artist"]["id"])
    other.create("Morning", artist)
    await_plays(store, 3)
    until(lambda: other.plays(artist) == {"Morning": 3})
    until(lambda: one.plays(artist) == {"Morning": 3})
    other.send(listens)  # again
    one.create("Noon", artist)
    one.kill()  # perhaps before it looked
    await_plays(store, 8)
    until(lambda: other.plays(artist) == {"Morning": 3, "Noon": 5})
    other.send(listens)
    other.create("Evening", artist)
    await_plays(store, 15)
    until(lambda: other.plays(artist) == HEARD)
    assert other.api("GET", "users/me/pending-listens")["pagination"]["total"] == 0
    assert store.read(lambda: (Play.select().count(), PendingListen.select().count())).result() == (15, 15)
    require_sound(store)
