"""Clients generated from the OpenAPI document work without hand-fixing."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.generated_clients import CLIENTS, GeneratedClient
from tests.support.serving import Client

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

Run = Callable[[str, Client], Awaitable[Any]]


@pytest.fixture(params=["py", "ts"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return a function that runs a script with the client in its language, and returns the JSON that it prints."""
    client: GeneratedClient = request.getfixturevalue({"py": "python_client", "ts": "typescript_client"}[request.param])

    if request.param == "ts":
        client.prepare(CLIENTS / "walk.ts", CLIENTS / "files.ts")

    async def start(script: str, of: Client) -> Any:
        return json.loads(await client.run(CLIENTS / f"{script}.{request.param}", of.root, str(of.token)))

    return start


@pytest.fixture
def demo(anonymous: Client, world: dict[str, str]) -> Client:
    """Return a client of the fixtures' demo account."""
    return anonymous.holding(world["demo"])


async def test_a_client_pages_through_a_list_and_builds_a_playlist(run: Run, demo: Client) -> None:
    albums = (await demo.get("albums?perPage=100")).json["albums"]["data"]
    tracks = [track["id"] for album in albums for track in album["tracks"]]
    assert len(albums) > 4
    assert await run("walk", demo) == {
        "albums": [album["id"] for album in albums],
        "playlist": "Generated",
        "tracks_count": 3,
        "first_page": tracks[:2],
        "total": 3,
    }


async def exported(client: Client, **body: int) -> dict[str, Any]:
    """Return the files in Base64 or the errors, by format, requested without a generated client."""
    found = {}
    for name in ("csv", "xlsx", "pdf"):
        answer = await client.post(f"producer-intelligence/insights/export/{name}", body)
        found[name] = answer.json if answer.status != 200 else base64.b64encode(answer.body).decode()
    return found


async def test_a_client_gets_files_as_bytes_and_their_errors_as_objects(run: Run, demo: Client) -> None:
    files = await exported(demo)
    assert all(isinstance(file, str) for file in files.values())
    assert await run("files", demo) == [
        files,
        await exported(demo, album_id=2**53 - 1),
        await exported(demo, album_id=1, artist_id=1),
        await exported(demo.holding("none")),
    ]


async def test_a_python_client_returns_every_example_of_the_document(python_client: GeneratedClient) -> None:
    count, changed = json.loads(await python_client.run(CLIENTS / "examples.py"))
    assert count > 800
    assert changed == []
