"""Requests that are executed twice have the effect that docs/testing-your-client.md names."""

from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.page_commands import text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),  # a demo has its own database, whatever store the run uses
]
PLAY = {"track_id": 1, "played_at": "2026-03-01T11:00:00Z"}
LISTS = (
    "playlists",
    "playlists/1/tracks",
    "users/me/likes",
    "users/me/reposts",
    "users/me/followed-users",
    "tracks/6/comments",
    "messaging/conversations/1/messages",
    "collections",
)
SAME = [
    ("GET, HEAD, PUT, PATCH, DELETE", "PUT", "playlists/1", {"name": "New"}),
    ("GET, HEAD, PUT, PATCH, DELETE", "PATCH", "playlists/1", {"name": "New"}),
    ("GET, HEAD, PUT, PATCH, DELETE", "DELETE", "playlists/1", None),
    ("`POST /plays`", "POST", "plays", {"plays": [PLAY]}),
    ("`POST /plays`", "POST", "plays", {"plays": [{**PLAY, "client_id": "b1946ac9"}]}),
    ("`PUT /playlists`", "PUT", "playlists", {"name": "New"}),
    ("fcm-tokens", "POST", "fcm-tokens", {"token": "device"}),
    ("tracks/remove", "POST", "playlists/1/tracks/remove", {"ids": [6]}),
    ("invite", "POST", "playlists/1/invite", {"user_id": 3}),
    *((verb, "POST", f"tracks/6/{verb}", None) for verb in ("like", "unlike", "repost", "unrepost")),
    *((verb, "POST", f"users/4/{verb}", None) for verb in ("follow", "unfollow")),
]
TWICE = [
    ("tracks/add", "playlists/1/tracks/add", {"ids": [6, 7]}),
    ("tracks/move", "playlists/1/tracks/move", {"from": 1, "to": 3}),
    ("playlists", "playlists", {"name": "New"}),
    ("comments", "tracks/6/comments", {"content": "New"}),
    ("messages", "messaging/messages", {"conversation_id": 1, "message_text": "New"}),
]


def state(demo: Demo) -> list[Any]:
    """Return what the requests change: rows of lists, and the plays of a track."""
    figures = demo.get("producer-intelligence/insights/tracks/1").json["data"]["plays"]["total"]
    return [figures, *(demo.get(f"{path}?perPage=100").json.get("pagination") for path in LISTS)]


def assert_guide_names(request: str) -> None:
    assert request in text("testing-your-client.md", "Requests that can be repeated")


@pytest.mark.parametrize(("name", "method", "path", "body"), SAME)
def test_a_request_that_can_be_repeated_changes_nothing_more(
    own_demo: Demo, name: str, method: str, path: str, body: object
) -> None:
    assert_guide_names(name)
    assert own_demo.ask(method, path, body).status in {200, 201}
    once = state(own_demo)

    assert own_demo.ask(method, path, body).status in {200, 201, 404, 409}
    assert state(own_demo) == once


@pytest.mark.parametrize(("name", "path", "body"), TWICE)
def test_a_request_that_cannot_be_repeated_changes_more(own_demo: Demo, name: str, path: str, body: object) -> None:
    assert_guide_names(name)
    assert own_demo.post(path, body).status in {200, 201}
    once = state(own_demo)

    assert own_demo.post(path, body).status in {200, 201}
    assert state(own_demo) != once
