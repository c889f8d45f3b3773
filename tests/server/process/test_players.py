"""A story with real players: Supysonic and an offline queue of liblistenbrainz, a label's sheet, and the figures."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import duckdb
import pytest

from musicsvc.clock import DAY, SECOND, Clock
from tests.support.command import run_in_process
from tests.support.generated_clients import CLIENTS, PYTHON
from tests.support.html_page import HtmlPage
from tests.support.page_client import page_client
from tests.support.players import Heard, Supysonic, offline_queue, require, supysonic
from tests.support.preloaded import given_environment
from tests.support.program import Program, until
from tests.support.reserved_port import can_listen, reserved_port
from tests.test_readme import BLOCKS, commands

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
MANAGER, PASSWORD = "ann@label.test", "twelve songs without a sound"
ARTIST = "Ann Example"
KNOWN, LATER = ["Morning", "Noon", "Evening"], ["Dusk", "Night", "Midnight"]
MISSING = ("Nobody Example", "Elsewhere")  # which no sheet brings
PLAYED = {"Morning": 3, "Dusk": 2, "Night": 5}  # by Supysonic, which has these files
QUEUED = {"Noon": 4, "Evening": 6, "Midnight": 7, "Dusk": 9}
PART = 5  # listens that the queue sends at once
PERIOD = "30-days"


class Person(NamedTuple):
    """The tokens of a listener: one for programs, one for the player."""

    token: str
    player: str


class Service:
    """The service, which the README's commands set up, and which may be killed."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        *setup, self._serve = commands(BLOCKS[2])
        printed = [_run(*arguments) for arguments in setup]
        self.link = re.findall(r"/password/[\w-]+", printed[1])[0]
        self.token = printed[3].strip()
        self.address = f"http://127.0.0.1:{port}"
        self._program = self._started()

    def _started(self) -> Program:
        program = Program(self._folder, *self._serve, "--port", str(self._port)).__enter__()
        assert program.root == self.address
        return program

    def kill(self) -> None:
        """Kill all its processes."""
        os.killpg(self._program.process.pid, signal.SIGKILL)
        self._program.process.wait()
        until(lambda: can_listen(self._port))

    def start_again(self) -> None:
        self._program = self._started()

    def close(self) -> None:
        self._program.__exit__()

    def join(self, email: str) -> Person:
        """Create an account, with a token for programs and one for its player."""
        _run("user", "create", email)
        _run("access", "grant", email)
        token = ("token", "create", email, "--name", "tests")
        return Person(_run(*token).strip(), _run(*token, "--scope", "listen").strip())

    def get(self, path: str, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        request = Request(f"{self.address}/api/v1/{path}", headers=headers)  # noqa: S310 - the server of this test
        with urlopen(request) as answer:  # noqa: S310 - the same
            return json.load(answer)

    def pending(self, person: Person) -> dict[str, int]:
        """Return the numbers of listens of a person that wait for their track, by title."""
        rows = self.get("users/me/pending-listens", person.token)["pagination"]["data"]
        return {row["track"]: row["listens"] for row in rows}


class Figures(NamedTuple):
    """Plays and listeners of the artist, and the plays of its tracks."""

    plays: int
    listeners: int
    tracks: dict[str, int]


def _run(*arguments: str) -> str:
    done = run_in_process(arguments)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


@pytest.fixture
def service(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    require()
    monkeypatch.chdir(folder)
    with reserved_port() as port:
        service = Service(folder, port)
        yield service
        service.close()


def bring(folder: Path, titles: list[str]) -> None:
    """Import a sheet with these titles."""
    sheet = folder / "tracks.csv"
    sheet.write_text("".join(["Title,Artist\n", *(f"{title},{ARTIST}\n" for title in titles)]), "utf-8")
    _run("import", "catalog", str(sheet), "--user", MANAGER)


def play(player: Supysonic, begin: int) -> None:
    """Play songs, each a minute after the other; of the first one the player says first that it plays now."""
    songs, at = player.songs(), begin
    assert {*songs} == {*PLAYED}
    player.scrobble(songs["Morning"], at, submission=False)
    for title, times in PLAYED.items():
        for _ in range(times):
            player.scrobble(songs[title], at)
            at += 60


def queue(begin: int) -> list[list[Heard]]:
    """Return the parts of a queue of listens, each a minute after the other, in no order of titles."""
    titles = [(ARTIST, title) for title, times in QUEUED.items() for _ in range(times)]
    mixed = [*titles[::2], MISSING, *titles[1::2]]
    listens = [(*names, begin + 60 * place) for place, names in enumerate(mixed)]
    return [listens[start : start + PART] for start in range(0, len(listens), PART)]


def send(service: Service, token: str, parts: list[list[Heard]]) -> None:
    """Send the queue, during which the service is killed; then, as the player does not know what came in, all again."""
    with offline_queue(service.address, token) as interrupted:
        for part in parts[:2]:
            interrupted.send(part)
        interrupted.begin(parts[2])
        service.kill()
    service.start_again()
    with offline_queue(service.address, token) as again:
        for part in parts:
            again.send(part)


def insights(service: Service) -> Figures:
    """Read the figures of the artist by the API."""
    return figures(service.get(f"producer-intelligence/insights/artists/1?period={PERIOD}", service.token)["data"])


def figures(data: Any) -> Figures:
    tracks = {row["name"]: row["plays"]["period"] for row in data["top_tracks"]}
    return Figures(data["plays"]["period"], data["listeners"]["unique"], tracks)


async def look(service: Service) -> tuple[HtmlPage, str]:
    """Set the password of the manager with the link that the README's command printed, and look at the artist's page.

    Return it and a share link that programs may read.
    """
    subject = "/insights/artist/1"
    async with page_client(service.address) as browser:
        await browser.post(service.link, {"new_password": PASSWORD})
        await browser.sign_in(MANAGER, PASSWORD)
        page = HtmlPage((await browser.get(f"{subject}?period={PERIOD}")).body)
        made = await browser.post(f"{subject}/share?period={PERIOD}", {"days": "9", "programs": "on"})
    return page, service.address + re.findall(r"/reports/[\w.-]+\.[\w-]{22}", made.body.decode())[0]


def shown(page: HtmlPage) -> Figures:
    """Return the figures of the artist on its page."""
    tracks = {row[0]: int(row[1]) for row in page.table("Track")}
    return Figures(int(page.figures["plays.period"]), int(page.figures["listeners.unique"]), tracks)


def linked(link: str, folder: Path) -> tuple[int, dict[str, int]]:
    """Read the plays of the artist and of its tracks from a share link with DuckDB."""
    for table in ("days", "tracks"):
        with urlopen(f"{link}.csv?table={table}") as answer:  # noqa: S310 - the server of this test
            (folder / f"{table}.csv").write_bytes(answer.read())
    with duckdb.connect() as connection:
        ((plays,),) = connection.sql(f"SELECT sum(plays) FROM read_csv('{folder}/days.csv')").fetchall()
        rows = connection.sql(f"SELECT track, plays_period FROM read_csv('{folder}/tracks.csv')").fetchall()
    return plays, dict(rows)


def told(service: Service) -> Figures:
    """Ask for the figures of the artist with the official client of assistants."""
    if not [*PYTHON.parent.glob("lib/python*/site-packages/mcp")]:
        pytest.skip("the client of assistants is not installed (tests/clients/install): all before it holds")
    command: list[str | Path] = [
        PYTHON / "python",
        CLIENTS / "assistant.py",
        f"{service.address}/mcp",
        service.token,
        "auto",
    ]
    asked = json.dumps([["figures", {"kind": "artist", "id": 1, "period": PERIOD}]])
    done = subprocess.run(command, input=asked, env=given_environment(), capture_output=True, text=True, check=True)
    ((failed, _, structured),) = json.loads(done.stdout)["results"]
    assert not failed
    return figures(structured["data"])


def test_what_players_report_is_in_every_figure_once(service: Service, folder: Path) -> None:
    begin = (Clock().now() - 3 * DAY) // SECOND
    bring(folder, KNOWN)
    ben, cleo = (service.join(f"{name}@label.test") for name in ("ben", "cleo"))
    with supysonic(folder / "supysonic", service.address, ARTIST, PLAYED) as player:
        assert "Error" in player.link(ben.token)
        assert "Successfully linked" in player.link(ben.player)
        play(player, begin)
        send(service, cleo.player, queue(begin))
        play(player, begin)  # a repeat
    heard = Counter(PLAYED) + Counter(QUEUED)
    known = {title: heard[title] for title in KNOWN}
    assert insights(service) == Figures(sum(known.values()), 2, known)
    waiting = {title: QUEUED[title] for title in LATER if title in QUEUED} | {MISSING[1]: 1}
    assert service.pending(ben) == {title: PLAYED[title] for title in LATER if title in PLAYED}
    assert service.pending(cleo) == waiting
    bring(folder, LATER)
    service.kill()
    service.start_again()
    until(lambda: service.pending(ben) == {} and service.pending(cleo) == {MISSING[1]: 1})
    expected = Figures(heard.total(), 2, {**heard})
    assert insights(service) == expected
    page, link = asyncio.run(look(service))
    assert shown(page) == expected
    assert linked(link, folder) == (expected.plays, expected.tracks)
    assert told(service) == expected
