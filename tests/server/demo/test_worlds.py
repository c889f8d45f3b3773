"""The worlds of a demo: their sizes, and that the extreme values of the edge world obey the rules of the API."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from musicsvc.server.routes.catalog import ROUTES as CATALOG
from musicsvc.server.routes.messages import ROUTES as MESSAGES
from musicsvc.server.routes.playlists import ROUTES as PLAYLISTS
from musicsvc.server.routes.route import ACCESS_REQUESTS, V1, Access
from musicsvc.server.routes.users import ROUTES as USERS
from musicsvc.server.schemas.catalog import TrackEdit
from tests.support.demo import Demo, running_demo
from tests.support.response_checks import conforms

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),  # a demo has its own database, whatever store the run uses
]
QUERIES = {f"{V1}/search": "?q=caf", f"{V1}/users/search": "?q=caf"}
READ = [
    route
    for route in (*CATALOG, *USERS, *PLAYLISTS, *MESSAGES)
    if route.method == "GET" and route.path != f"{ACCESS_REQUESTS}/me"  # 404 for an account that was given access
]
EMPTY = {f"{V1}/users/me/followed-users", f"{V1}/playlists/invitations", f"{V1}/playlists/{{id}}/collaborators"}
SENT = TrackEdit.model_fields.keys() - {"artists", "tags"}  # objects in a response


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("edge"), "--world", "edge") as demo:
        yield demo


def listed(demo: Demo, path: str) -> Any:
    """Return the paginator of a list, under whatever name the response has it."""
    (found,) = [part for part in demo.get(path).json.values() if isinstance(part, dict) and "data" in part]
    return found


def total(demo: Demo, path: str) -> int:
    number: int = listed(demo, f"{path}?perPage=1")["total"]
    return number


@pytest.mark.parametrize(
    ("world", "sizes"), [("empty", (0, 0, 0)), ("one", (1, 1, 1)), ("large", (517, 2_013, 10_018))]
)
def test_a_world_has_its_size_and_a_reset_returns_to_it(
    tmp_path_factory: pytest.TempPathFactory, world: str, sizes: tuple[int, ...]
) -> None:
    with running_demo(tmp_path_factory.mktemp(world), "--world", world) as demo:
        for added in (0, 1, 0):
            if added:
                assert demo.post("artists", {"name": "Barbara Strozzi"}).status == 201
            found = tuple(total(demo, kind) for kind in ("artists", "albums", "tracks"))
            assert found == (sizes[0] + added, *sizes[1:])
            if added:
                assert demo.post("/demo/reset").status == 200
        for kind in ("artists", "albums", "tracks"):
            conforms(demo.get(kind), "GET", kind)


def subjects(demo: Demo, path: str) -> list[Any]:
    """Return what to put into the path: nothing, or the ids of the first and the last row of the list it belongs to."""
    if "{" not in path:
        return [None]
    if "{user}" in path:
        return [demo.get("users/me").json["user"]["id"]]
    rows = listed(demo, f"{path.partition('/{')[0]}?perPage=100")["data"]
    return [rows[0]["id"], rows[-1]["id"]]  # one has all values, the other as few as possible


def test_every_response_of_the_edge_world_is_that_of_the_document(edge: Demo) -> None:
    filled = set()
    for route in READ:
        for subject in subjects(edge, route.path):
            path = re.sub(r"{\w+}", str(subject), route.path)
            query = QUERIES.get(path, "?perPage=100" if "{" not in route.path else "")
            answer = edge.get(path + query)
            assert answer.status == 200, f"{path}: {answer.body!r}"
            conforms(answer, "GET", path, public=False)
            if '"data":[]' not in answer.body.decode():
                filled.add(route.path)
            if route.access is Access.PUBLIC:
                conforms(edge.get(path + query, token=None), "GET", path, public=True)
        edge.post("/demo/clock", {"advance": "1m"})  # for the rate limit
    assert {route.path for route in READ} - filled == EMPTY


def test_lists_of_the_edge_world_end_exactly_at_a_page(edge: Demo) -> None:
    for path, length in (
        *((path, 20) for path in ("artists", "albums", "users/me/followers", "users/me/likes")),
        ("tracks", 100),
        ("users/me/reposts", 100),
    ):
        last = listed(edge, f"{path}?page={length // 20}")
        assert (last["total"], last["last_page"], len(last["data"])) == (length, length // 20, 20), path
    assert {playlist["tracks_count"] for playlist in listed(edge, "playlists")["data"]} == {0, 20, 100}


def test_what_the_edge_world_has_can_be_sent_to_the_api(edge: Demo) -> None:
    """So that the world has no row that the API refuses."""
    for artist in listed(edge, "artists")["data"]:
        name = artist["name"]
        assert edge.ask("PATCH", f"artists/{artist['id']}", {"name": name}).json["artist"]["name"] == name
    for album in (listed(edge, "albums")["data"][at] for at in (0, -1)):
        fields = ("name", "description", "release_date", "image", "upc", "label")
        answer = edge.ask("PATCH", f"albums/{album['id']}", {name: album[name] for name in fields})
        assert {name: answer.json["album"][name] for name in fields} == {name: album[name] for name in fields}
    for track in (listed(edge, "tracks?perPage=100")["data"][at] for at in (0, -1)):
        sent = {name: track[name] for name in SENT if name in track}
        answer = edge.ask("PATCH", f"tracks/{track['id']}", sent)
        assert {name: answer.json["track"][name] for name in sent} == sent


def test_the_edge_world_has_null_in_every_optional_field_and_a_value_in_another_row(edge: Demo) -> None:
    for path in ("artists", "albums", "tracks", "playlists", "collections"):
        rows = listed(edge, f"{path}?perPage=100")["data"]
        optional = {name for row in rows for name, value in row.items() if value is None}
        assert optional, path
        assert any(all(row[name] is None for name in optional) for row in rows), path
        assert any(all(row[name] is not None for name in optional) for row in rows), path


def test_names_and_ids_of_the_edge_world_are_extreme(edge: Demo) -> None:
    artists = listed(edge, "artists")["data"]
    assert max(len(artist["name"]) for artist in artists) == 255
    assert {"Caf\u00e9", "Cafe\u0301", "null", "0"} < {artist["name"] for artist in artists}
    added = edge.post("tracks", {"name": "New", "duration": 1, "artists": [artists[0]["id"]]}).json["track"]["id"]
    assert all(2**37 - 10**6 <= number < 2**37 for number in (added, *(artist["id"] for artist in artists)))
    for path in ("playlists", "collections", "genres", "access-tokens", "messaging/conversations"):
        assert all(2**53 - 10**6 <= row["id"] < 2**53 for row in listed(edge, path)["data"]), path
    edge.post("/demo/reset")


def test_the_edge_world_prints_a_read_only_an_expired_and_a_revoked_token(edge: Demo) -> None:
    printed = dict(re.findall(r"Token of demo@musicsvc\.test, ([\w-]+): (msvc_\w+)", edge.program.err))
    assert printed.keys() == {"read-only", "expired", "revoked"}
    for name in ("expired", "revoked"):
        refused = edge.get("users/me", token=printed[name])
        assert refused.status == 401
        assert f'error_description="{name}"' in refused.headers["WWW-Authenticate"]
    assert edge.get("users/me", token=printed["read-only"]).status == 200
    assert edge.post("artists", {"name": "Barbara Strozzi"}, token=printed["read-only"]).status == 403
