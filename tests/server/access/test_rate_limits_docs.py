"""The examples of docs/limits.md: responses, client, settings and command."""

import asyncio
import re
import shlex
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from musicsvc.config import Limits, Settings
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.engine.store import Store
from tests.support.monotonic_clock import StoppedClock
from tests.support.program import Program
from tests.support.serving import Answer, person, running

DOCS = (Path(__file__).parents[3] / "docs" / "limits.md").read_text("utf-8")
sqlite = pytest.mark.only_on("sqlite")  # PostgreSQL counts by its own clock


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", DOCS, re.DOTALL)


def limited(**limits: object) -> Settings:
    return Settings(limits=Limits.model_validate({"local": True, **limits}))


def is_shown(answer: Answer, block: str) -> None:
    """Assert that the response is the one of the block."""
    head, _, body = block.partition("\n\n")
    first, *lines = head.splitlines()
    assert first.split()[1] == str(answer.status)
    assert [f"{line.partition(': ')[0]}: {answer.headers[line.partition(': ')[0]]}" for line in lines] == lines
    assert not body or answer.body.decode() == body.strip()


@sqlite
async def test_answers_tell_what_the_documentation_shows(store: Store, clock: StoppedClock) -> None:
    _, token = person(store, clock, "ann@label.test")
    let_in, refused = blocks("http")
    async with running(store, clock, limited()) as anonymous:
        client = anonymous.holding(token)
        for _ in range(2):
            await client.get("albums")
        is_shown(await client.post(f"{INSIGHTS}/export/csv"), let_in)
    clock.seconds += 180
    async with running(store, clock, limited(token="3/minute")) as anonymous:
        client = anonymous.holding(token)
        for _ in range(3):
            await client.get("albums")
            clock.seconds += 16
        is_shown(await client.get("albums"), refused)


@pytest.mark.slow
async def test_the_client_of_the_documentation_gets_every_answer(store: Store, clock: StoppedClock) -> None:
    names: dict[str, Any] = {}
    (client,) = blocks("python")
    exec(client, names)  # noqa: S102 - our own documentation
    _, token = person(store, clock, "ann@label.test")
    clock.runs = True
    async with running(store, clock, limited(token="4/second")) as server:
        url, began = f"{server.root}/api/v1/albums", time.monotonic()
        for _ in range(10):
            assert (await asyncio.to_thread(names["ask"], url, token))["status"] == "success"
        assert time.monotonic() - began >= 2


def test_the_documented_defaults_are_the_defaults() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| `(\d+/\w+)` \|", DOCS, re.MULTILINE))
    actual = Limits().model_dump()
    assert documented == {name: value for name, value in actual.items() if isinstance(value, str)}
    assert (actual["enabled"], actual["local"]) == (True, False)
    rows = DOCS.partition("## Settings")[2].partition("##")[0]
    assert set(re.findall(r"`limits\.(\w+)`", rows)) == actual.keys()


@pytest.mark.slow
@sqlite
def test_limits_can_be_tried_on_the_demo_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = blocks("sh")
    words = shlex.split(line)
    for name, _, value in (word.partition("=") for word in words if "=" in word):
        monkeypatch.setenv(name, value)
    arguments = words[words.index("musicsvc") + 1 :]
    with Program(tmp_path, *arguments, "--port", "0") as demo:
        demo.root  # noqa: B018 - waits until it listens
        token, url = re.findall(r'Bearer (\S+)" (\S+)', demo.out)[0]
        for _ in range(3):
            with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"})) as answer:  # noqa: S310 - an address of the test - ours
                assert answer.headers["X-RateLimit-Limit"] == "3"
        with pytest.raises(HTTPError, match="429"):
            urlopen(Request(url, headers={"Authorization": f"Bearer {token}"}))  # noqa: S310 - an address of the test
