"""`musicsvc request` is answered as a request to a server, and leaves no token, count or time of use."""

import asyncio
import json
from base64 import b64decode
from functools import partial
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import JSON_MEDIA, Access
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.catalog import artists
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token
from musicsvc.store.security import security_events
from tests.cli.conftest import Json, Run
from tests.paging import world as worlds
from tests.rights.world import OWNER, World, playlist
from tests.support.response_keys import check
from tests.support.serving import Client

ANN = "ann@paging.test"
ROOT = "http://127.0.0.1:8080"
PUBLIC_READS = [route for route in ROUTES if route.access is Access.PUBLIC and route.docs.media == JSON_MEDIA]
OF_ONE_RESPONSE = {"date", "x-request-id", "etag", "content-length"}  # the tag and the length depend on the port


@pytest.fixture
def filled(store: Store, clock: MovableClock) -> worlds.World:
    return store.write(partial(worlds.build, ROOT, clock.now())).result()


@pytest.mark.slow
def test_no_richer_field_leaks_into_the_public_tier(filled: worlds.World, ask: Json) -> None:
    assert filled.tokens
    (artist, *_) = ask("request", "/api/v1/albums/1", "--user", ANN)["body"]["album"]["artists"]
    for route in PUBLIC_READS:
        assert route.answer is not None
        assert route.public_answer is not None
        path = route.path.replace("{id}", str(artist["id"] if "/artists/" in route.path else 1))
        shown = ask("request", path, "--as", "public,token")
        public, token = (shown["tiers"][tier] for tier in ("public", "token"))
        assert (public["status"], token["status"]) == (200, 200)
        check(public["body"], route.public_answer, f"{path} in the public tier")
        check(token["body"], route.answer, f"{path} with a token")
        (difference,) = shown["differences"]
        assert difference["removed"] == [], path
        if route.public_answer == route.answer:
            assert difference["added"] == [], path
            continue
        assert difference["added"], path
        with pytest.raises((ValueError, AssertionError)):  # so the check finds a richer field
            check(token["body"], route.public_answer, f"{path} with a token")


@pytest.mark.only_on("sqlite")  # the same over either: both make the same statements
async def test_the_response_is_that_of_a_server(anonymous: Client, filled: worlds.World, ask: Json) -> None:
    ann = anonymous.holding(filled.tokens["ann"])
    for path in ("/api/v1/albums?perPage=3", "/api/v1/playlists", "/api/v1/albums/999999", "/api/v1/tracks?perPage=x"):
        found = await asyncio.to_thread(ask, "request", path, "--user", ANN)
        served = await ann.get(path)
        assert found["status"] == served.status
        assert found["body"] == json.loads(served.body.decode().replace(anonymous.root, ROOT))
        headers = {name.lower(): value for name, value in found["headers"].items()}
        expected = {name.lower(): value for name, value in served.headers.items()}
        same = headers.keys() - OF_ONE_RESPONSE
        assert {name: headers[name] for name in same} == {name: expected.get(name) for name in same}


def test_rights_are_those_of_the_account(store: Store, clock: MovableClock, ask: Json) -> None:
    world = World(store, clock)
    artist = world.own_artist(OWNER)
    body = json.dumps({"name": "Renamed"})
    path = f"/api/v1/artists/{artist}"
    assert ask("request", "patch", path, "--data", body)["status"] == 401
    for who, status in (("stranger", 403), ("suspended", 403), ("without access", 403), (OWNER, 200)):
        sent = ask("request", "PATCH", path, "--user", world.email(who), "--data", "-", stdin=body)
        assert (sent["status"], who) == (status, who)
    assert sent["curl"] == f'curl -i -X PATCH --json @- -H "Authorization: Bearer $TOKEN" {ROOT}{path}'
    assert store.read(lambda: artists.get(artist).name).result() == "Renamed"


def test_the_owner_is_the_manager_and_the_token_is_that_of_another(store: Store, clock: MovableClock, run: Run) -> None:
    world = World(store, clock)
    artist = world.own_artist(OWNER)
    figures = f"/api/v1/producer-intelligence/insights/artists/{artist}"
    shown = run("request", figures, "--as", "owner,public,token").stdout
    parts = [line for line in shown.splitlines() if line.startswith("==") or line[:3].isdigit()]
    assert parts[:6] == ["== public ==", "401 Unauthorized", "== token ==", "403 Forbidden", "== owner ==", "200 OK"]
    for who in (OWNER, "no token"):  # the second is the oldest account with access
        number = store.write(partial(playlist(), world, who)).result()
        shown = run("request", f"/api/v1/playlists/{number}", "--as", "token,owner", "--json").stdout
        tiers = json.loads(shown)["tiers"]
        assert [tiers[name]["status"] for name in ("token", "owner")] == [404, 200]
    refused = run("request", "/api/v1/playlists", "--as", "owner", expect=1)
    assert refused.stderr == "Error: There is no owner: name it with --user EMAIL.\n"


def test_a_request_leaves_an_event_if_it_may_write_and_nothing_else(
    store: Store, clock: MovableClock, ask: Json
) -> None:
    world = World(store, clock)
    email = world.email(OWNER)

    def token_rows() -> list[object]:
        return store.read(lambda: [*Token.select().order_by(Token.id).tuples()]).result()

    before = token_rows()
    for _ in range(3):
        assert ask("request", "/api/v1/playlists", "--user", email)["status"] == 200
    created = ask("request", "/api/v1/playlists", "--user", email, "--data", '{"name": "New"}')
    assert created["status"] == 200
    assert not [name for name in created["headers"] if "ratelimit" in name.lower()]
    events = store.read(lambda: security_events.find(limit=100)).result()
    sent = [event[2:6] for event in events if event.kind == "request.sent"]
    assert sent == [(world.ids[OWNER], None, "cli", "POST /api/v1/playlists")]
    assert token_rows() == before


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["/api/v1/album"], "There is no endpoint /api/v1/album. musicsvc openapi lists them."),
        (["/settings"], "/settings is a page, for browsers."),
        (["/demo/clock"], "There is no endpoint /demo/clock."),
        (["/api/v1/albums", "--user", "eve@example.test"], "There is no account eve@example.test."),
        (["/api/v1/albums", "--data", "@broken.json"], "The body is not valid JSON: "),
        (["/api/v1/albums", "--data", "@missing.json"], "missing.json: No such file or directory."),
        (["/api/v1/albums", "--data", "-"], "stdin is empty."),
        (["/api/v1/albums", "--as", "token"], "There is no other account with API access: give it to one "),
    ],
)
def test_a_request_that_cannot_be_sent_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    assert run("request", *arguments, expect=1).stderr.startswith(f"Error: {error}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["albums"],
        ["FETCH", "/healthz"],
        ["GET"],
        ["/healthz", "--as", "nobody"],
        ["POST", "/api/v1/albums", "--as", "token"],
    ],
)
def test_a_wrong_request_is_wrong_usage(run: Run, arguments: list[str]) -> None:
    assert run("request", *arguments, expect=2).stdout == ""


def test_a_missing_database_is_one_line(bare: Run) -> None:
    assert "init" in bare("request", "/api/v1/albums", expect=1).stderr


def test_a_picture_is_not_written_to_the_terminal(store: Store, clock: MovableClock, run: Run, ask: Json) -> None:
    world = World(store, clock)
    path = f"/avatars/{world.ids[OWNER]}"
    shown = ask("request", path)
    assert shown["headers"]["Content-Type"].startswith("image/")
    assert "--json has them in base64)" in run("request", path).stdout


@pytest.mark.slow
def test_the_base_path_may_be_left_out(filled: worlds.World, ask: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled.tokens
    monkeypatch.setenv("MUSICSVC_SERVER__BASE_PATH", "/music")
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://label.test/music")
    for path in ("/api/v1/genres", "/music/api/v1/genres"):
        found = ask("request", "HEAD", path)
        assert (found["status"], found["body"]) == (200, None)
        assert found["curl"] == "curl -I https://label.test/music/api/v1/genres"


@pytest.mark.slow
def test_an_export_is_sent_whole(filled: worlds.World, ask: Json) -> None:
    assert filled.tokens
    path = "/api/v1/producer-intelligence/insights/export"
    table = ask("request", f"{path}/csv", "--user", ANN, "--data", "{}")
    assert table["body"].startswith('"track_id"')
    assert len(table["body"].encode()) == int(table["headers"]["Content-Length"])
    book = b64decode(ask("request", f"{path}/xlsx", "--user", ANN, "--data", "{}")["body"])
    assert book.startswith(b"PK")
