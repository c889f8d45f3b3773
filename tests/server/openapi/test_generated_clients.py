"""Clients generated from the OpenAPI document work without hand-fixing."""

import json
from typing import Any

import pytest

from tests.support.generated_clients import CLIENTS, GeneratedClient
from tests.support.serving import Client

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


async def expected(client: Client, name: str) -> dict[str, Any]:
    """Return the expected output of a client's walk, requested without that client."""
    albums = (await client.get("albums?perPage=100")).json["albums"]["data"]
    tracks = [track["id"] for album in albums for track in album["tracks"]]
    assert len(albums) > 4
    return {
        "albums": [album["id"] for album in albums],
        "playlist": name,
        "tracks_count": 3,
        "first_page": tracks[:2],
        "total": 3,
    }


async def test_a_python_client_pages_through_a_list_and_builds_a_playlist(
    anonymous: Client, world: dict[str, str], python_client: GeneratedClient
) -> None:
    demo = anonymous.holding(world["demo"])
    printed = await python_client.run(CLIENTS / "walk.py", demo.root, str(demo.token))
    assert json.loads(printed) == await expected(demo, "From Python")


async def test_a_typescript_client_pages_through_a_list_and_builds_a_playlist(
    anonymous: Client, world: dict[str, str], typescript_client: GeneratedClient
) -> None:
    demo = anonymous.holding(world["demo"])
    printed = await typescript_client.run(CLIENTS / "walk.ts", demo.root, str(demo.token))
    assert json.loads(printed) == await expected(demo, "From TypeScript")
