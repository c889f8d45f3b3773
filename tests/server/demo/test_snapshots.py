"""Snapshots of a demo: data and time are saved and restored while it serves requests."""

import json
import sqlite3
import threading
from http.client import HTTPConnection

import pytest

from tests.support.demo import Demo

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses


def save(demo: Demo, name: str) -> str:
    response = demo.post(f"/demo/snapshots/{name}", token=None)
    assert response.status == 201, response.json
    assert response.json["snapshot"]["name"] == name
    now: str = response.json["snapshot"]["now"]
    return now


def restore(demo: Demo, name: str) -> None:
    response = demo.post(f"/demo/snapshots/{name}/restore", token=None)
    assert response.status == 200, response.json


def names(demo: Demo) -> list[str]:
    return [artist["name"] for artist in demo.get("artists?perPage=4").json["artists"]["data"]]


def test_a_snapshot_restores_the_data_and_the_time(own_demo: Demo) -> None:
    own_demo.post("artists", {"name": "Barbara Strozzi"})
    saved = save(own_demo, "one")
    before = names(own_demo)
    own_demo.post("artists", {"name": "Isabella Leonarda"})
    assert names(own_demo) != before
    own_demo.post("/demo/clock", {"advance": "40d"})
    restore(own_demo, "one")
    assert names(own_demo) == before
    assert own_demo.get("/demo/clock").json["clock"]["now"][:16] == saved[:16]


def test_cursors_from_before_a_restore_are_refused(own_demo: Demo) -> None:
    save(own_demo, "cursors")
    own_demo.post("artists", {"name": "Barbara Strozzi"})
    cursor = own_demo.get("changes").json["cursor"]
    restore(own_demo, "cursors")
    for _ in range(2):  # also when there are as many changes again
        assert own_demo.get(f"changes?since={cursor}").status == 422
        own_demo.post("artists", {"name": "Isabella Leonarda"})
    restored = own_demo.get("changes").json["cursor"]
    restore(own_demo, "cursors")
    assert own_demo.get(f"changes?since={restored}").status == 422


@pytest.mark.slow
def test_what_is_in_memory_after_a_restore_is_not_of_the_time_before(own_demo: Demo) -> None:
    """Both changes give the tables the same version."""
    save(own_demo, "two")
    for name in ("Barbara Strozzi", "Isabella Leonarda", "Francesca Caccini"):
        own_demo.post("artists", {"name": name})
        assert names(own_demo)[0] == names(own_demo)[0] == name
        restore(own_demo, "two")
        own_demo.post("artists", {"name": f"{name} II"})
        assert names(own_demo)[0] == f"{name} II"
        restore(own_demo, "two")


def test_counts_of_plays_are_those_of_the_snapshot_at_once(own_demo: Demo) -> None:
    """Otherwise, responses in memory may show them for some seconds."""
    save(own_demo, "plays")
    own_demo.post("plays", {"plays": [{"track_id": 1, "played_at": "2026-03-01T11:00:00Z", "client_id": "new"}]})
    after = own_demo.get("tracks/1").json["track"]["plays"]
    restore(own_demo, "plays")
    assert own_demo.get("tracks/1").json["track"]["plays"] == after - 1


def test_a_revoked_token_is_valid_again_after_a_restore(own_demo: Demo) -> None:
    save(own_demo, "three")
    listed = own_demo.get("access-tokens").json["pagination"]["data"]
    (token,) = [row["id"] for row in listed if own_demo.token.endswith(row["last_four"])]
    assert own_demo.ask("DELETE", f"access-tokens/{token}").status == 200
    assert own_demo.get("users/me").status == 401
    restore(own_demo, "three")
    assert own_demo.get("users/me").status == 200


def test_connections_stay_open(own_demo: Demo) -> None:
    save(own_demo, "four")
    connection = HTTPConnection(*own_demo.address, timeout=60)
    seen = set()
    for _ in range(3):
        connection.request("GET", "/api/v1/albums", headers={"Authorization": f"Bearer {own_demo.token}"})
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (200, True)
        assert connection.sock is not None
        seen.add(connection.sock.getsockname())
        restore(own_demo, "four")
    connection.close()
    assert len(seen) == 1


def test_snapshots_are_listed_replaced_and_deleted(own_demo: Demo) -> None:
    for snapshot in own_demo.get("/demo/snapshots").json["snapshots"]:
        own_demo.ask("DELETE", f"/demo/snapshots/{snapshot['name']}")
    own_demo.post("artists", {"name": "First"})
    times = [save(own_demo, name) for name in ("a", "b-2.x")]
    own_demo.post("artists", {"name": "Second"})
    times.append(save(own_demo, "a"))
    listed = own_demo.get("/demo/snapshots", token=None).json["snapshots"]
    assert listed == [{"name": "b-2.x", "now": times[1]}, {"name": "a", "now": times[2]}]
    restore(own_demo, "b-2.x")
    assert names(own_demo)[0] == "First"
    restore(own_demo, "a")
    assert names(own_demo)[0] == "Second"
    assert own_demo.ask("DELETE", "/demo/snapshots/a").status == 200
    for method, path in (("DELETE", "a"), ("POST", "a/restore"), ("POST", "/restore")):
        assert own_demo.ask(method, f"/demo/snapshots/{path}").status == 404


def test_a_snapshot_that_cannot_be_written_is_503_and_the_earlier_one_stays(own_demo: Demo) -> None:
    own_demo.post("artists", {"name": "Kept"})
    save(own_demo, "kept")
    own_demo.post("artists", {"name": "Not kept"})
    (folder,) = own_demo.folder.glob("musicsvc-scratch-*/snapshots")
    away = folder.rename(folder.with_name("away"))
    refused = own_demo.post("/demo/snapshots/kept")
    assert (refused.status, refused.json["message"]) == (503, "The snapshot cannot be saved.")
    away.rename(folder)
    restore(own_demo, "kept")
    assert names(own_demo)[0] == "Kept"


@pytest.mark.parametrize("name", ["a%2fb", "%20", "x" * 65, "%C3%A9"])
def test_a_name_has_plain_characters(demo: Demo, name: str) -> None:
    response = demo.post(f"/demo/snapshots/{name}")
    assert (response.status, [*response.json["errors"]]) == (422, ["name"])


@pytest.mark.slow
def test_snapshots_and_resets_under_writers_lose_no_half_of_a_write(own_demo: Demo) -> None:
    save(own_demo, "busy")
    answers: list[int] = []
    done = threading.Event()

    def write() -> None:
        connection = HTTPConnection(*own_demo.address, timeout=60)
        headers = {"Authorization": f"Bearer {own_demo.token}", "Content-Type": "application/json"}
        while not done.is_set():
            for method, path, body in (
                ("POST", "/api/v1/playlists", json.dumps({"name": "Busy"})),
                ("GET", "/api/v1/playlists", None),
            ):
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                response.read()
                answers.append(response.status)
        connection.close()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(5):
        restore(own_demo, "busy")
        save(own_demo, "busier")
    done.set()
    for writer in writers:
        writer.join()
    assert {*answers} == {200}
    (file,) = own_demo.folder.glob("musicsvc-scratch-*/musicsvc.db")
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
