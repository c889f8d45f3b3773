"""Routes bound to their functions at start-up: no signature is inspected while a request is answered."""

import inspect
import sys
from typing import Any

import pytest

from musicsvc.errors import NotFound
from musicsvc.server.routes.route import Route, Subject, bind
from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the functions whose signature the service reads; libraries may read signatures."""
    found: list[object] = []
    signature = inspect.signature

    def recording(function: Any, *more: Any, **options: Any) -> inspect.Signature:
        if sys._getframe(1).f_globals["__name__"].startswith("musicsvc."):
            found.append(function)
        return signature(function, *more, **options)

    monkeypatch.setattr(inspect, "signature", recording)
    return found


async def test_no_signature_is_read_while_requests_are_answered(client: Client, inspected: list[object]) -> None:
    created = await client.post("playlists", {"name": "Morning"})
    playlist = created.json["playlist"]["id"]
    for method, path, status in (
        ("GET", f"playlists/{playlist}", 200),
        ("GET", "albums?perPage=1", 200),
        ("GET", f"playlists/{2**53 - 1}", 404),
        ("GET", "notifications/me/subscriptions", 200),
        ("GET", "producer-intelligence/insights/export/formats", 200),
        ("POST", f"playlists/{playlist}/tracks/add", 422),
        ("GET", "/cover-art/templates/1.png", 200),
        ("GET", "/healthz", 200),
    ):
        answer = await client(method, path, {} if method == "POST" else None)
        assert answer.status == status, (path, answer.body)
    assert inspected == []


def test_a_route_reads_the_signatures_of_its_functions_once(inspected: list[object]) -> None:
    def find(number: int) -> int:
        return number

    def show(subject: int) -> dict[str, Any]:
        return {"subject": subject}

    route = Route("GET", "/things/{id}", show, find=find)
    assert inspected == [show, find]
    assert route.call_handler({"subject": 7, "now": 1}) == {"subject": 7}
    assert len(inspected) == 2


def test_arguments_are_taken_by_name_and_a_missing_one_is_an_error() -> None:
    call = bind(lambda body, now: (body, now))
    assert call({"now": 1, "body": 2, "other": 3}) == (2, 1)
    with pytest.raises(KeyError, match="body"):
        call({"now": 1})


def test_an_iterator_that_ends_in_a_handler_is_an_error_and_not_a_response_that_never_comes() -> None:
    call = bind(lambda: next(iter(())))
    with pytest.raises(RuntimeError, match="no next item"):
        call({})


def test_a_subject_is_found_by_an_id_or_by_a_text_for_its_actor_and_at_a_time() -> None:
    def by_id(number: int, *, actor: str) -> tuple[int, str]:
        return number, actor

    def by_name(name: str) -> str:
        return name

    def by_time(name: str, *, now: int) -> tuple[str, int]:
        return name, now

    things, users = Subject("/a/things/{id}/parts", by_id), Subject("/a/users/{user}", by_name)
    links, sources = Subject("/a/{link}", by_time), {"caller": "me", "now": 3}
    assert things.load("7", sources=sources) == (7, "me")
    assert users.load("me", sources=sources) == "me"
    assert links.load("x", sources=sources) == ("x", 3)
    assert [(each.depends_on_caller, each.depends_on_time) for each in (things, users, links)] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    for text in ("me", "07", "0", "-1", "7.0", str(2**53)):
        with pytest.raises(NotFound):
            things.load(text, sources=sources)
    assert [things.resource(text) for text in ("7", "me", "x")] == ["things/7", None, None]
    assert [users.resource(text) for text in ("7", "me", "x")] == ["users/7", "users/me", None]
