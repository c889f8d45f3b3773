"""The fixtures for the demo account: every list has rows, and private data of others stay private."""

from typing import Any

import pytest

from tests.support.serving import Client


@pytest.fixture
def demo(anonymous: Client, world: dict[str, str]) -> Client:
    return anonymous.holding(world["demo"])


LISTS = {
    "albums": 13,
    "artists": 17,
    "artists/1/albums": 2,
    "artists/1/tracks": 3,
    "tracks/1/comments": 5,
    "users/search?query=zoe": 1,
    "users/me/followers": 4,
    "users/me/followed-users": 2,
    "playlists": 4,
    "playlists/1/tracks": 4,
    "playlists/3/tracks": 4,
    "playlists/4/tracks": 3,
    "playlists/6/tracks": 10,
    "collections": 2,
    "messaging/conversations": 3,
    "messaging/conversations/1/messages": 4,
    "notifications/me/subscriptions": 3,
}


async def test_every_list_shows_something_to_the_demo_account(demo: Client) -> None:
    assert {path: longest((await demo.get(path)).json) for path in LISTS} == LISTS


def longest(value: Any) -> int:
    """Return the number of rows of a response: the length of its first list."""
    if isinstance(value, list):
        return len(value)
    return max(map(longest, value.values()), default=0) if isinstance(value, dict) else 0


async def test_playlists_stand_for_each_right_that_demo_can_have(demo: Client) -> None:
    rag = {"ids": [5]}
    asked = {number: (await demo.post(f"playlists/{number}/tracks/add", rag)).status for number in range(1, 8)}
    assert asked == {1: 200, 2: 404, 3: 200, 4: 200, 5: 200, 6: 403, 7: 404}
    assert (await demo.post("playlists/2/accept-invite")).status == 200
    assert (await demo.post("playlists/2/tracks/add", rag)).status == 200
    assert (await demo.get("messaging/conversations/4/messages")).status == 404


async def test_an_invitation_is_pending_declined_expired_or_taken_back(
    anonymous: Client, world: dict[str, str]
) -> None:
    listener, label = anonymous.holding(world["listener"]), anonymous.holding(world["valid"])
    rag = {"ids": [5]}
    assert (await listener.post("playlists/3/tracks/add", rag)).status == 200
    assert (await listener.post("playlists/4/accept-invite")).json["message"].startswith("This invitation has expired")
    assert (await listener.post("playlists/6/tracks/add", rag)).status == 403
    assert (await label.post("playlists/3/accept-invite")).json["message"].startswith("You have already declined")


async def test_the_numbers_of_a_track_are_there(demo: Client) -> None:
    track = (await demo.get("tracks/1")).json["track"]
    assert (track["likes_count"], track["reposts_count"]) == (4, 2)
