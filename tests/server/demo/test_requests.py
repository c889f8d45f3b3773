"""The journal of a demo: its last requests to the API."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.demo import Demo, running_demo
from tests.support.program import until

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
ALBUMS = "/api/v1/albums"
NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(scope="module")
def shared_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Start a demo of these tests alone: a request of another file, whose connection broke, may be recorded late."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


@pytest.fixture
def demo(demo: Demo) -> Demo:
    """Return the demo with an empty journal."""
    assert demo.ask("DELETE", "/demo/requests").status == 200
    return demo


def journal(demo: Demo, since: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = demo.get(f"/demo/requests?since={since}").json["requests"]
    return found


def last(demo: Demo) -> dict[str, Any]:
    return journal(demo)[0]


def test_a_request_is_recorded_with_its_response(demo: Demo) -> None:
    tag = demo.get("albums?perPage=2").headers["Etag"]
    demo.get("albums?perPage=2", If_None_Match=tag, User_Agent="my-client/1.0", X_Request_Id="mine")
    again, first = journal(demo)
    assert again["number"] == first["number"] + 1
    assert (first["status"], first["ended_by"], first["fault"]) == (200, None, None)
    assert first["response_headers"]["ETag"] == tag
    assert (again["method"], again["target"], again["route"]) == ("GET", f"{ALBUMS}?perPage=2", ALBUMS)
    assert (again["status"], again["request_id"], again["body"]) == (304, "mine", None)
    assert again["headers"] == {"If-None-Match": tag, "User-Agent": "my-client/1.0"}
    assert again["account"]["name"]
    assert again["token"] | {"id": 0, "name": ""} == {
        "id": 0, "name": "", "last_four": demo.token[-4:], "scope": "read-write", "valid": True, "refusal": None,
    }  # fmt: skip
    assert again["at"].startswith("2026-03-01T")
    assert 0 < again["seconds"] < 60


def test_a_refusal_is_recorded_with_its_message_and_errors(demo: Demo) -> None:
    demo.post("artists", {"name": 12})
    refused = last(demo)
    assert (refused["status"], refused["body"], refused["body_bytes"]) == (422, {"name": 12}, 12)
    assert refused["errors"] == {"name": "Must be a string."}
    assert refused["message"] == "The given data was invalid."


def test_mistyped_requests_are_recorded_too_and_pages_and_the_demo_itself_are_not(demo: Demo) -> None:
    for path in ("/", "/healthz", "/static/nothing", "/demo/clock", "/demo/nothing", "/openapi.json"):
        demo.get(path)
    assert journal(demo) == []
    demo.get("/api/v2/albums")
    demo.ask("PUT", ALBUMS, {"name": "x"})
    wrong, unknown = journal(demo)
    assert (unknown["target"], unknown["route"], unknown["status"]) == ("/api/v2/albums", None, 404)
    assert (wrong["method"], wrong["route"], wrong["status"], wrong["body"]) == ("PUT", None, 405, {"name": "x"})


def test_the_token_is_recorded_and_why_it_is_refused(demo: Demo) -> None:
    for token, refusal in ((None, None), ("msvc_unknown", "unknown"), (demo.token, None)):
        demo.get(ALBUMS, token=token)
        found = last(demo)["token"]
        assert (found and found["refusal"]) == refusal
        assert (found is None) == (token is None)


def test_an_expired_token_is_recorded_as_expired(own_demo: Demo) -> None:
    own_demo.post("/demo/clock", {"advance": "91d"})
    own_demo.get(ALBUMS)
    found = last(own_demo)
    assert (found["status"], found["token"]["valid"], found["token"]["refusal"]) == (401, False, "expired")
    assert found["account"]["name"] == found["account"]["name"]
    assert found["response_headers"]["WWW-Authenticate"].endswith('"expired"')
    assert found["at"].startswith("2026-05-31T")


@pytest.mark.parametrize(
    ("fault", "status", "ended_by"),
    [
        ("503", 503, None),
        ("401-expired", 401, None),
        ("slow=1ms", 201, None),
        ("dribble=2x1ms", 201, None),
        ("duplicate", 201, None),
        ("cut", None, "demo"),
        ("reset", None, "demo"),
        ("lost-response", None, "demo"),
        ("truncate=half", 201, "demo"),
    ],
)
def test_a_fault_is_recorded_with_what_the_client_got(
    demo: Demo, fault: str, status: int | None, ended_by: str | None
) -> None:
    with suppress(HTTPException, OSError):
        demo.post("artists", {"name": "Recorded"}, fault=fault)
    until(lambda: len(journal(demo)) == 1)
    found = last(demo)
    assert (found["fault"], found["status"], found["ended_by"]) == (
        {"fault": fault, "source": "header"},
        status,
        ended_by,
    )
    assert found["body"] == {"name": "Recorded"}
    assert bool(found["response_headers"]) == (status is not None)


def test_the_rule_that_injects_a_fault_is_named(demo: Demo) -> None:
    rule = demo.post("/demo/faults", {"fault": "slow=2ms", "count": 1}).json["fault"]["id"]
    demo.get(ALBUMS)
    assert last(demo)["fault"] == {"fault": "slow=2ms", "source": f"rule {rule}"}


@pytest.mark.parametrize("fault", ["slow=300ms", "dribble=5x100ms"])
def test_a_client_that_goes_away_is_recorded_when_its_request_ends(demo: Demo, fault: str) -> None:
    target = f"{ALBUMS}?per_page=7"  # of no other request: one of a test before may end, and be recorded, only now
    with socket.create_connection(demo.address) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX-Demo-Fault: {fault}\r\n\r\n".encode())
    until(lambda: target in [entry["target"] for entry in journal(demo)])
    (found,) = (entry for entry in journal(demo) if entry["target"] == target)
    assert (found["route"], found["status"], found["ended_by"]) == (ALBUMS, 200, "client")


def test_a_request_is_listed_once_it_has_ended_and_with_the_part_of_its_body_that_has_arrived(demo: Demo) -> None:
    head = ["POST /api/v1/artists HTTP/1.1", "Host: localhost", f"Authorization: Bearer {demo.token}"]
    more = ["Content-Type: application/json", "Content-Length: 500", "Expect: 100-continue", "", ""]
    with socket.create_connection(demo.address, timeout=60) as connection:
        connection.sendall("\r\n".join(head + more).encode())
        assert b" 100 " in connection.recv(1024)  # the server begins to read the body
        connection.sendall(b'{"name": ')
        demo.get("genres")
        assert [entry["route"] for entry in journal(demo)] == ["/api/v1/genres"]
    until(lambda: len(journal(demo)) == 2)
    found = last(demo)
    assert (found["route"], found["status"], found["ended_by"]) == ("/api/v1/artists", None, "client")
    assert (found["body"], found["body_bytes"]) == ('{"name": ', 9)


def test_a_poll_gets_what_is_new_and_numbers_go_on_until_a_reset(own_demo: Demo) -> None:
    for _ in range(3):
        own_demo.get(ALBUMS)
    first = last(own_demo)["number"]
    own_demo.get("genres")
    assert [entry["target"] for entry in journal(own_demo, since=first)] == ["/api/v1/genres"]
    assert own_demo.ask("DELETE", "/demo/requests").status == 200
    assert journal(own_demo) == []
    own_demo.get("genres")
    assert last(own_demo)["number"] == first + 2
    own_demo.post("/demo/reset")
    assert journal(own_demo) == []
    own_demo.get("genres")
    assert [(each["number"], each["target"]) for each in journal(own_demo)] == [(1, "/api/v1/genres")]


@NEEDS_CURL
@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", "albums?perPage=1&q=it's+%22$HOME%22`id`", None, {}),
        ("GET", "albums/../albums/[1-3]?a={b,c}", None, {}),
        ("POST", "artists", {"name": 'it\'s "$TOKEN" `id` \\ !! 😀\n\t@'}, {}),
        ("POST", "artists", {"name": "Elsewhere"}, {"X_Demo_Fault": "409", "Accept": "text/plain"}),
        ("DELETE", "albums/1?a=b", None, {"X_Demo_Fault": "403"}),
        ("HEAD", "albums", None, {"If_None_Match": 'W/"it\'s"'}),
        ("M-SEARCH", "albums", {"a": 1}, {}),
    ],
)
def test_the_curl_line_repeats_the_request(
    demo: Demo, method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    demo.ask(method, path, body, **headers)
    sent = last(demo)
    paste(demo, sent["curl"])
    assert comparable(last(demo)) == comparable(sent)
    assert last(demo)["number"] == sent["number"] + 1


def paste(demo: Demo, line: str) -> None:
    environment = {"TOKEN": demo.token, "PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    run = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: value
        for name, value in entry.items()
        if name not in {"number", "at", "seconds", "request_id", "body_bytes"}
    }
    headers = {name: value for name, value in entry["headers"].items() if name not in {"User-Agent", "Accept"}}
    returned = {name: value for name, value in entry["response_headers"].items() if name != "RateLimit"}
    return kept | {"headers": headers, "response_headers": returned}


def test_every_secret_is_redacted_wherever_it_is(demo: Demo) -> None:
    secret, number = "zithers-and-hurdy-gurdies", 471147114711  # to be found
    links = f"http://localhost/password/{secret} /reports/{secret}?a=b /cover-art/previews/{secret}"
    body = {
        "password": f"{secret} and more", "new_password": {"value": secret}, "token": secret, "TOKEN": [secret],
        "note": f"Bearer {secret} {demo.token} {links}",
        "nested": [{"client_secret": secret, "cookie": f"musicsvc={secret}", "password": number, "api_key": None}],
    }  # fmt: skip
    text = json.dumps(body)
    more = {"Cookie": f"musicsvc={secret}", "Prefer": f"token={secret}", "Accept": f"Bearer {secret}"}
    query = f"?token={secret}&user%5Bpassword%5D={secret}&a=msvc_{number}&b={demo.token}&signature={secret}"
    demo.post(f"albums{query}", body, User_Agent=demo.token, If_None_Match=f'"{demo.token}"', **more)
    demo.post("albums", body, Content_Type=f"text/{demo.token}")
    raw_post(demo, f"password={secret}&x=1", **more)
    raw_post(demo, text.replace("new_password", "new_pass\\u0077ord"))
    raw_post(demo, text[:-3])
    raw_post(demo, f"GET / HTTP/1.1\r\nSet-Cookie: a=b; c={secret}\r\nAuthorization: bearer {secret}\r\n\r\n")
    raw_post(demo, json.dumps(body | {"new_password": None})[:-3])
    raw_post(demo, json.dumps({"padding": ["x" * 9] * 3000, **body}))
    demo.get(f"albums/{demo.token}", X_Request_Id=demo.token, X_Demo_Fault=demo.token)
    found = demo.get("/demo/requests").body.decode()
    assert len(json.loads(found)["requests"]) == 9
    for hidden in ("hurdy", str(number), demo.token, demo.token[6:40]):
        assert hidden not in found
    assert found.count("***") > 40


def test_a_secret_in_percent_encoding_is_redacted_too(demo: Demo) -> None:
    secret, encoded = "zithers", "".join(f"%{ord(char):02x}" for char in "msvc_zithers")
    for path in (
        f"?a=%6dsvc_{secret}",
        f"?pass%77ord={secret}",
        f"?a={encoded}",
        f"?tok%2565n=a%26{secret}",
        f"?next=%2Freports%2F{secret}",
        f"/%6dsvc_{secret}",
        f"?q=%7B%22password%22:%22{secret}%22%7D",
    ):
        demo.get(f"albums{path}")
    raw_post(demo, f"pass%77ord={secret}&x=1")
    demo.get("albums?q=%C3%A4%26a")
    listed = demo.get("/demo/requests")
    assert listed.json["requests"][0]["target"] == "/api/v1/albums?q=%C3%A4%26a"
    assert len(listed.json["requests"]) == 9
    assert secret not in unquote(unquote(listed.body.decode()))


def raw_post(demo: Demo, body: str, **headers: str) -> None:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = ["POST /api/v1/artists HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}"]
    with socket.create_connection(demo.address, 60) as connection:
        connection.sendall("\r\n".join([*head, "Content-Type: application/json", *lines, "", body]).encode("latin-1"))
        while connection.recv(65536):
            pass


def test_a_long_body_is_cut_and_read_from_a_file_by_curl(demo: Demo) -> None:
    demo.post("artists", {"name": "x" * 20_000})
    found = last(demo)
    assert found["body"] == '{"name": "' + "x" * (16 * 1024 - 10) + "…"
    assert found["body_bytes"] == 20_012
    assert "--json @body " in found["curl"]
    raw_post(demo, "\xff\xfe")  # no text
    assert "--json @body " in last(demo)["curl"]


@pytest.mark.slow
def test_the_journal_stays_small_whatever_clients_send(own_demo: Demo) -> None:
    largest = {"name": "😀" * 85_000, "other": "x" * (1024 * 1024 - 85_000 * 12 - 100)}
    long = dict.fromkeys(("Accept", "User_Agent", "If_None_Match"), "x" * 8000)
    before = memory(own_demo)
    for _ in range(200):
        assert own_demo.post(f"artists?{'x' * 3000}", largest, **long).status == 422
    found = own_demo.get("/demo/requests")
    assert len(found.json["requests"]) == 200
    assert len(found.body) < 200 * 50_000
    assert memory(own_demo) - before < 100 * 1024 * 1024


def memory(demo: Demo) -> int:
    """Return the bytes that the server has in memory."""
    status = Path(f"/proc/{demo.program.worker}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) * 1024


@pytest.mark.slow
def test_only_the_newest_thousand_requests_are_kept(demo: Demo) -> None:
    connection = HTTPConnection(*demo.address, timeout=60)
    for number in range(1003):
        connection.request("GET", f"/api/v1/nothing/{number}")
        connection.getresponse().read()
    connection.close()
    newest = [f"/api/v1/nothing/{number}" for number in range(1002, 2, -1)]
    until(lambda: [entry["target"] for entry in journal(demo)] == newest)  # the last may just be ending


def test_odd_requests_are_recorded_in_valid_json(demo: Demo) -> None:
    raw_post(demo, '{"name": 1e999}', **{"User-Agent": "\xff\x80"})
    raw_post(demo, "\0\x1b[31m")
    demo.post("artists", {"name": 2**70, "other": [1e300, -0.0]})
    first, second, third = journal(demo)[::-1]
    assert (first["headers"]["User-Agent"], first["body"]) == ("\ufffd\ufffd", '{"name": 1e999}')
    assert (second["body"], "@body" in second["curl"]) == ("\0\x1b[31m", True)
    assert third["body"] == {"name": 2**70, "other": [1e300, -0.0]}
