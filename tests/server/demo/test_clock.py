"""The clock of a demo: every part of the service follows it at once, and it goes back by a reset only."""

import re
import socket
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.importing.tasks.uploads import Place
from tests.support.command import run_in_process
from tests.support.demo import NOW, Demo, running_demo
from tests.support.program import until

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
START = datetime.fromisoformat(NOW)
MINUTE = timedelta(minutes=1)


def now(demo: Demo) -> datetime:
    return datetime.fromisoformat(demo.get("/demo/clock").json["clock"]["now"])


def advance(demo: Demo, duration: str) -> None:
    response = demo.post("/demo/clock", {"advance": duration}, token=None)
    assert response.status == 200, response.json


@pytest.mark.slow
def test_the_clock_moves_by_a_duration_and_to_a_time(own_demo: Demo) -> None:
    assert own_demo.post("/demo/reset").status == 200  # tests before this one may have taken minutes
    before = now(own_demo)
    assert START <= before < START + 10 * MINUTE
    advance(own_demo, "90m")
    assert timedelta(0) <= now(own_demo) - before - timedelta(minutes=90) < MINUTE
    response = own_demo.post("/demo/clock", {"to": "2031-05-06T09:08:09+02:00"})
    moved = datetime.fromisoformat(response.json["clock"]["now"])
    assert moved - datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC) < timedelta(seconds=1)
    assert response.json["clock"]["speed"] == 1


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"advance"}),
        ({"advance": "1d", "to": "2030-01-01"}, {"to"}),
        ({"advance": "soon"}, {"advance"}),
        ({"advance": 7, "to": "then"}, {"advance", "to"}),
        ({"advance": "-1d"}, {"advance"}),
        ({"advance": "999999999d"}, {"advance"}),
        ({"to": "2026-02-28T12:00:00Z"}, {"to"}),
        ({"to": "9999-01-01T00:00:00Z"}, {"to"}),
        ({"to": "0001-01-01T00:00:00+23:00"}, {"to"}),
    ],
)
def test_another_move_is_refused_and_changes_nothing(demo: Demo, body: dict[str, object], fields: set[str]) -> None:
    response = demo.post("/demo/clock", body)
    assert response.status == 422
    assert response.json["errors"].keys() == fields
    assert now(demo) < START + 10 * MINUTE


def test_tokens_expire_by_the_clock_and_are_valid_again_after_a_reset(own_demo: Demo) -> None:
    assert "Token-Expires-At" not in own_demo.get("users/me").headers
    advance(own_demo, "89d")
    assert own_demo.get("users/me").headers["Token-Expires-At"] == "2026-05-30T12:00:00.000000Z"
    advance(own_demo, "1d")
    refused = own_demo.get("users/me")
    assert (refused.status, 'error_description="expired"' in refused.headers["WWW-Authenticate"]) == (401, True)
    assert own_demo.post("/demo/reset").status == 200
    assert own_demo.get("users/me").status == 200


def test_the_date_header_follows(own_demo: Demo) -> None:
    advance(own_demo, "1000d")
    dates = [
        own_demo.get(path).headers["Date"] for path in ("albums", "/api/v1/nothing", "/docs", "/healthz", "/sign-in")
    ]
    with socket.create_connection(own_demo.address, 60) as connection:
        connection.sendall(b"GET / HTTP/9.9\r\n\r\n")
        refused = connection.recv(65536).decode()
    assert refused.startswith("HTTP/1.1 400 ")
    dates += re.findall("(?m)^Date: (.*)\r$", refused)
    assert len(dates) == 6
    for date in dates:
        assert timedelta(0) <= parsedate_to_datetime(date) - START - timedelta(days=1000) < 10 * MINUTE


def test_windows_of_figures_follow(own_demo: Demo) -> None:
    def plays() -> dict[str, int]:
        found: dict[str, int] = own_demo.get(f"{INSIGHTS}/tracks/1?period=7-days").json["data"]["plays"]
        return found

    before = plays()
    assert before["period"] > 0
    advance(own_demo, "30d")
    assert plays() == before | {"period": 0}


def test_signed_links_expire_by_the_clock(own_demo: Demo) -> None:
    body = {"template_id": 1, "title": "Maple Leaf Rag", "artist": "Scott Joplin"}
    url = own_demo.post("cover-art/preview", body).json["preview_url"]
    path = url.removeprefix(own_demo.root)
    advance(own_demo, "23h")
    assert own_demo.get(path).status == 200
    advance(own_demo, "2h")
    assert own_demo.get(path).status in {404, 410}


def test_invitations_expire_by_the_clock(own_demo: Demo) -> None:
    playlist = own_demo.post("playlists", {"name": "Shared"}).json["playlist"]["id"]
    invited = own_demo.post(f"playlists/{playlist}/invite", {"user_id": 2})
    assert invited.status == 200, invited.json
    assert own_demo.post(f"playlists/{playlist}/invite", {"user_id": 2}).status == 409
    advance(own_demo, "8d")
    assert own_demo.post(f"playlists/{playlist}/invite", {"user_id": 2}).status == 200


def logged(demo: Demo, request_id: str) -> bool:
    (file,) = demo.folder.glob("musicsvc-scratch-*/activity.db")
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        query = "SELECT count(*) FROM activity WHERE request_id = ?"
        return bool(connection.execute(query, [request_id]).fetchone()[0])
    finally:
        connection.close()


def test_the_activity_log_is_pruned_at_the_new_time(own_demo: Demo) -> None:
    own_demo.get("albums", X_Request_Id="an-old-call")
    until(lambda: logged(own_demo, "an-old-call"))
    advance(own_demo, "91d")
    until(lambda: not logged(own_demo, "an-old-call"))


def test_uploads_that_nobody_needs_are_deleted_at_the_new_time(own_demo: Demo) -> None:
    (database,) = own_demo.folder.glob("musicsvc-scratch-*/musicsvc.db")
    place = Place.build(database.parent / "temporary", f"sqlite:///{database}")
    with place.locked(1) as folder:
        (folder / "left.csv").write_text("track,artist\n", "utf-8")
    advance(own_demo, "1d")
    until(lambda: not (folder / "left.csv").exists(), seconds=30)  # by itself within a minute


def test_calls_after_the_time_of_a_snapshot_are_not_in_the_activity_log_after_a_restore(own_demo: Demo) -> None:
    own_demo.get("albums", X_Request_Id="before-it")
    until(lambda: logged(own_demo, "before-it"))
    own_demo.post("/demo/snapshots/log")
    advance(own_demo, "1h")
    own_demo.get("albums", X_Request_Id="after-it")
    until(lambda: logged(own_demo, "after-it"))
    own_demo.get("albums", X_Request_Id="not-written-yet")
    assert own_demo.post("/demo/snapshots/log/restore").status == 200
    own_demo.get("albums", X_Request_Id="the-next")
    until(lambda: logged(own_demo, "the-next"))
    found = [name for name in ("before-it", "after-it", "not-written-yet") if logged(own_demo, name)]
    assert found == ["before-it"]


def test_a_reset_goes_back_to_the_data_the_time_and_the_rules_of_the_start(own_demo: Demo) -> None:
    artists = own_demo.get("artists").json
    own_demo.post("artists", {"name": "Barbara Strozzi"})
    advance(own_demo, "1d")
    assert own_demo.post("/demo/faults", {"fault": "503"}).status == 201
    response = own_demo.post("/demo/reset", token=None)
    assert response.status == 200
    assert datetime.fromisoformat(response.json["clock"]["now"]) - START < timedelta(seconds=5)
    assert own_demo.get("/demo/faults").json["faults"] == []
    assert own_demo.get("artists").json == artists


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Return a demo whose clock stands still, with a limit of three requests a minute."""
    settings = {"MUSICSVC_LIMITS__LOCAL": "true", "MUSICSVC_LIMITS__TOKEN": "3/minute"}
    with running_demo(tmp_path_factory.mktemp("limited"), "--speed", "0", **settings) as demo:
        yield demo


@pytest.mark.slow
def test_rate_limits_follow_the_clock_and_a_reset(limited: Demo) -> None:
    def statuses(count: int) -> list[int]:
        return [limited.get("albums").status for _ in range(count)]

    assert statuses(4) == [200, 200, 200, 429]
    assert limited.post("/demo/reset").status == 200
    assert statuses(4) == [200, 200, 200, 429]
    wait = int(limited.get("albums").headers["Retry-After"])
    advance(limited, f"{wait - 1}s")
    assert statuses(1) == [429]
    advance(limited, "1s")
    assert statuses(1) == [200]
    assert limited.post("/demo/reset").status == 200
    assert statuses(4) == [200, 200, 200, 429]


def test_an_injected_429_counts_toward_no_limit(limited: Demo) -> None:
    assert limited.post("/demo/reset").status == 200
    assert [limited.get("albums", fault="429").status for _ in range(5)] == [429] * 5
    assert [limited.get("albums").status for _ in range(4)] == [200, 200, 200, 429]


def test_the_endpoints_of_the_demo_have_no_rate_limit(limited: Demo) -> None:
    responses = [limited.get("/demo/clock", token=None) for _ in range(70)]
    assert {response.status for response in responses} == {200}
    assert not any("RateLimit" in response.headers for response in responses)


def test_a_clock_of_speed_zero_moves_only_when_it_is_moved(limited: Demo) -> None:
    assert limited.post("/demo/reset").json["clock"] == {"now": "2026-03-01T12:00:00.000000Z", "speed": 0}
    advance(limited, "1s")
    assert limited.get("/demo/clock").json["clock"]["now"] == "2026-03-01T12:00:01.000000Z"


@pytest.mark.parametrize("more", [[], ["--tls-cert", "c", "--tls-key", "k"]])
def test_a_demo_refuses_addresses_other_than_loopback(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))
    done = run_in_process(["serve", "--demo", "--host", "0.0.0.0", *more])  # noqa: S104 - it is refused
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The demo listens on this machine only")


def test_requests_through_a_proxy_do_not_reach_the_endpoints_of_the_demo(demo: Demo) -> None:
    assert demo.get("/demo/clock", X_Forwarded_For="192.0.2.7", X_Forwarded_Proto="https").status == 404
    assert demo.post("/demo/reset", X_Forwarded_For="192.0.2.7", X_Forwarded_Proto="https").status == 404
