"""Faults that a header injects into the responses of a demo."""

import re
import socket
import sqlite3
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, RemoteDisconnected
from random import Random

import pytest
from hypothesis import given, strategies

from musicsvc.server.demo import faults
from musicsvc.server.routes.route import INSIGHTS, Family, Route
from musicsvc.server.routes.table import ROUTES
from tests.support.demo import Demo
from tests.support.program import until

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
ALBUMS, TRACK = "/api/v1/albums", f"{INSIGHTS}/tracks/1"
WAIT = {"429": "2", "503": "1"}


def error(code: str, message: str, **errors: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return the body of the general API, and that of the insights API."""
    more = {"errors": errors} if errors else {}
    return (
        {"status": "error", "message": message, "errors": errors},
        {"success": False, "message": message, "error": code, **more},
    )


BODIES = {
    "403": error("forbidden", "The account has no API access. Ask for it with POST /api/v1/access-requests."),
    "404": error("not_found", "There is nothing at this path."),
    "409": error("conflict", "The request conflicts with the current state."),
    "413": error("payload_too_large", "The body is larger than 1 MiB."),
    "422": error("validation_failed", "The given data was invalid.", page="Is not valid."),
    "429": error(
        "rate_limited", "The limit of 300 requests a minute for this token is reached. Try again in 2 seconds."
    ),
    "503": error("unavailable", "The database is not available."),
}


@pytest.mark.parametrize("status", BODIES)
def test_a_refusal_has_the_body_and_the_headers_of_a_real_one(demo: Demo, status: str) -> None:
    general, insights = demo.get(ALBUMS, fault=status), demo.get(TRACK, fault=status)
    expected = BODIES[status]
    assert (general.status, general.json) == (int(status), expected[0])
    assert insights.status == int(status)
    assert insights.json.keys() == expected[1].keys()
    assert insights.json["error"] == expected[1]["error"]
    for response in (general, insights):
        assert response.headers["X-Demo-Injected"] == "header"
        assert response.headers["Cache-Control"] == "no-store"
        assert len(response.headers["X-Request-Id"]) == 24
        assert response.headers.get("Retry-After") == WAIT.get(status)


WITH_OBJECTS = [
    route
    for route in ROUTES
    if route.parameters and not route.docs.undocumented and route.family in {Family.GENERAL, Family.INSIGHTS}
]


def of_missing(route: Route) -> str:
    """Return the path of an object that does not exist."""
    return re.sub(r"{\w+}", "999999", route.path.replace("/notifications/{user}", "/notifications/nobody"))


@pytest.mark.parametrize("route", WITH_OBJECTS, ids=lambda route: f"{route.method} {route.path}")
def test_a_404_is_the_one_of_an_object_that_does_not_exist(demo: Demo, route: Route) -> None:
    path, body = of_missing(route), {"any": 1} if route.body is not None else None
    real, injected = (demo.ask(route.method, path, body, fault=fault) for fault in (None, "404"))
    assert (injected.status, injected.json) == (real.status, real.json) == (404, injected.json)
    unknown = demo.ask(route.method, path, body, fault="404", token="msvc_unknown")
    assert (unknown.status, unknown.json) == (404, injected.json)


def test_a_404_does_not_depend_on_whether_the_object_exists(demo: Demo) -> None:
    real = demo.get("tracks/999999")
    assert demo.get("tracks/1", fault="404").json == real.json == error("", "There is no such track.")[0]
    assert demo.get("tracks/x", fault="404").json == demo.get("tracks/x").json


def test_a_429_has_the_headers_of_the_limits_that_the_request_counts_for(demo: Demo) -> None:
    export = demo.post(f"{INSIGHTS}/export/csv", {}, fault="429")
    assert export.status == 429
    assert export.headers["RateLimit-Policy"] == '"token";q=300;w=60, "exports";q=20;w=60'
    assert export.headers["RateLimit"] == '"token";r=0;t=2, "exports";r=0;t=2'
    assert (export.headers["X-RateLimit-Remaining"], export.headers["X-RateLimit-Reset"]) == ("0", "2")
    nobody = demo.get(ALBUMS, fault="429", token=None)
    assert nobody.headers["RateLimit"] == '"address";r=0;t=2'
    assert demo.get("users/me", fault="429", token=None).status == 429


@pytest.mark.parametrize("reason", ["expired", "revoked"])
def test_a_401_gives_its_reason(demo: Demo, reason: str) -> None:
    for path, body in (
        (ALBUMS, {"message": "Unauthenticated."}),
        (TRACK, {"success": False, "message": "Unauthenticated.", "error": "unauthorized"}),
    ):
        response = demo.get(path, fault=f"401-{reason}")
        assert (response.status, response.json) == (401, body)
        description = f'Bearer error="invalid_token", error_description="{reason}"'
        assert response.headers["WWW-Authenticate"] == description
        assert response.headers["X-Demo-Injected"] == "header"


def test_a_500_names_its_request_and_the_log_says_that_it_was_injected(demo: Demo) -> None:
    response = demo.get(ALBUMS, fault="500", X_Request_Id="my-own-id")
    assert response.status == 500
    assert response.json["message"] == "An internal error occurred. Report request my-own-id to the operator."
    until(lambda: "request my-own-id failed: the demo injected this fault" in demo.program.err)
    assert demo.get(ALBUMS, fault="503").status == 503
    until(lambda: "answering requests with 503: the demo injected this fault" in demo.program.err)


def test_a_fault_is_in_the_activity_log_as_a_real_one(demo: Demo) -> None:
    demo.post("artists", {"name": "Barbara Strozzi"}, fault="409", X_Request_Id="in-the-log")
    found: list[tuple[object, ...]] = []

    def logged() -> bool:
        query = "SELECT method, route, status, account_id, token_id FROM activity WHERE request_id = 'in-the-log'"
        for file in demo.folder.glob("musicsvc-scratch-*/activity.db"):
            address = f"file:{file}?mode=ro"
            with suppress(sqlite3.OperationalError), closing(sqlite3.connect(address, uri=True)) as connection:
                found[:] = connection.execute(query).fetchall()  # unless the server is about to create the log
        return bool(found)

    until(logged)
    assert found[0][:3] == ("POST", "/api/v1/artists", 409)
    assert None not in found[0]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Demo-Fault", "418"),
        ("X-Demo-Fault", "slow=soon"),
        ("X-Demo-Fault", "slow=61s"),
        ("X-Demo-Fault", "slow=lognormal(1s,999999)"),
        ("X-Demo-Fault", "dribble=1001x1ms"),
        ("X-Demo-Fault", "cut, reset"),
        ("X-Demo-Fault", ""),
        ("Prefer", "code=418"),
        ("Prefer", "wait=10, code=2xx"),
    ],
)
def test_an_unknown_fault_is_a_422_that_names_the_header(demo: Demo, header: str, value: str) -> None:
    response = demo.get(ALBUMS, **{header: value})
    assert response.status == 422
    assert [*response.json["errors"]] == [header]
    assert "X-Demo-Injected" not in response.headers


@pytest.mark.parametrize(
    ("preference", "status"),
    [("code=429", 429), ("wait=10, code=503", 503), ("CODE=404; a=b", 404), ('code="401"', 401), ("wait=10", 200)],
)
def test_a_preference_for_a_status_injects_it(demo: Demo, preference: str, status: int) -> None:
    response = demo.get(ALBUMS, Prefer=preference)
    assert response.status == status
    assert response.headers.get("X-Demo-Injected") == (None if status == 200 else "header")


def test_the_fault_of_the_header_wins_over_a_preference(demo: Demo) -> None:
    assert demo.get(ALBUMS, fault="404", Prefer="code=503").status == 404


def names(demo: Demo) -> list[str]:
    return [artist["name"] for artist in demo.get("artists?perPage=100").json["artists"]["data"]]


def test_a_cut_ends_the_connection_in_order_and_does_nothing(demo: Demo) -> None:
    assert [*demo.raw("POST", "/api/v1/artists", {"name": "Cut"}, fault="cut")] == []
    assert "Cut" not in names(demo)


def test_a_cut_is_orderly_also_while_the_body_arrives(demo: Demo) -> None:
    head = "POST /api/v1/artists HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\nX-Demo-Fault: cut\r\n\r\n"
    with socket.create_connection(demo.address, 60) as connection:
        connection.sendall(head.encode() + b"x" * 800_000)
        assert connection.recv(100) == b""


def test_a_reset_resets_the_connection_and_does_nothing(demo: Demo) -> None:
    with pytest.raises(ConnectionResetError):
        list(demo.raw("POST", "/api/v1/artists", {"name": "Reset"}, fault="reset"))
    assert "Reset" not in names(demo)


def test_a_lost_response_does_the_work(demo: Demo) -> None:
    with pytest.raises(RemoteDisconnected):
        demo.post("artists", {"name": "Lost"}, fault="lost-response")
    assert names(demo).count("Lost") == 1


def test_a_play_whose_response_was_lost_is_reported_again_without_being_counted_twice(demo: Demo) -> None:
    play = {"track_id": 1, "played_at": "2026-03-01T11:00:00Z", "client_id": "a lost response"}
    with pytest.raises(RemoteDisconnected):
        demo.post("plays", {"plays": [play]}, fault="lost-response")
    again = demo.post("plays", {"plays": [play]})
    assert (again.status, again.json["accepted"], again.json["repeated"]) == (201, 0, 1)


def test_a_duplicate_does_the_work_twice_and_answers_once(demo: Demo) -> None:
    response = demo.post("artists", {"name": "Twice"}, fault="duplicate")
    assert response.status == 201
    assert response.headers["X-Demo-Injected"] == "header"
    assert names(demo).count("Twice") == 2


def test_a_truncated_response_has_half_of_its_body(demo: Demo) -> None:
    whole = demo.get(ALBUMS).body
    received = b"".join(demo.raw("GET", ALBUMS, fault="truncate=half"))
    head, _, body = received.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(whole)}".encode() in head
    assert body == whole[: len(whole) // 2]


def test_a_dribbled_response_arrives_in_pieces(demo: Demo) -> None:
    whole = demo.get(ALBUMS).body
    received: list[bytes] = []
    for piece in demo.raw("GET", ALBUMS, fault="dribble=2x400ms"):
        received.append(piece)
        if b"".join(received).endswith(whole[-20:]):
            break
    assert len(received) > 1
    assert b"".join(received).partition(b"\r\n\r\n")[2] == whole


@pytest.mark.parametrize("fault", ["slow=200ms", "slow=0.2s", "slow=lognormal(200ms,0)"])
def test_a_slow_response_is_late(demo: Demo, fault: str) -> None:
    began = time.monotonic()
    assert demo.get(ALBUMS, fault=fault).json == demo.get(ALBUMS).json
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("fault", ["dribble=3x10ms", "truncate=half", "slow=1ms", "duplicate"])
def test_a_response_without_a_body_stays_whole(demo: Demo, fault: str) -> None:
    tag = demo.get(ALBUMS).headers["Etag"]
    assert demo.ask("HEAD", ALBUMS, fault=fault).status == 200
    assert demo.get(ALBUMS, fault=fault, If_None_Match=tag).status == 304


@pytest.mark.slow
def test_a_long_file_is_truncated_and_dribbled_too(demo: Demo) -> None:
    export = f"{INSIGHTS}/export/pdf"
    whole = len(demo.post(export, {}).body)
    assert whole > 64 * 1024
    received = b"".join(demo.raw("POST", export, {}, fault="truncate=half"))
    assert abs(len(received.partition(b"\r\n\r\n")[2]) - whole // 2) < 64
    assert abs(len(demo.post(export, {}, fault="dribble=5x1ms").body) - whole) < 64


def test_a_request_gets_its_fault_whatever_its_token_is(demo: Demo) -> None:
    assert demo.get("users/me", fault="503", token=None).status == 503
    assert demo.get("users/me", fault="503", token="msvc_unknown").status == 503
    assert demo.get("users/me", token="msvc_unknown").status == 401


def test_paths_that_do_not_exist_and_pages_have_no_faults(demo: Demo) -> None:
    for path, status in (("/api/v1/nothing", 404), ("/sign-in", 200), ("/demo/faults", 200)):
        response = demo.get(path, fault="503")
        assert response.status == status
        assert "X-Demo-Injected" not in response.headers


def test_clients_that_go_away_leave_no_error_in_the_log(demo: Demo) -> None:
    for fault in ("slow=100ms", "dribble=4x50ms", "cut", "reset", "lost-response", "truncate=half", "duplicate"):
        with socket.create_connection(demo.address) as connection:
            head = f"GET {ALBUMS} HTTP/1.1\r\nHost: localhost\r\nX-Demo-Fault: {fault}\r\n\r\n"
            connection.sendall(head.encode())
    assert demo.get(ALBUMS, fault="slow=400ms").status == 200
    assert "exception" not in demo.program.err


def test_the_connection_goes_on_after_a_refusal(demo: Demo) -> None:
    connection = HTTPConnection(*demo.address, timeout=60)
    headers = {"Authorization": f"Bearer {demo.token}", "X-Demo-Fault": "503", "Content-Type": "application/json"}
    for _ in range(3):
        connection.request("POST", "/api/v1/artists", iter([b'{"name":', b'"Chunked"}']), headers, encode_chunked=True)
        response = connection.getresponse()
        assert (response.status, response.getheader("Connection")) == (503, None)
        response.read()
    connection.close()


@given(
    strategies.from_regex(r"slow=(lognormal\()?[0-9.]{1,8}m?s(,[0-9.]{1,8}\))?", fullmatch=True), strategies.integers()
)
def test_every_delay_is_refused_or_between_nothing_and_a_minute(text: str, seed: int) -> None:
    try:
        faults.parse(text)
    except ValueError:
        return
    assert 0 <= faults.inject(text, "header", Random(seed)).delay <= 60


@pytest.mark.parametrize("text", ["503", "slow=2s", "slow=lognormal(90ms,0.5)", "dribble=10x200ms", "cut"])
def test_the_notation_of_each_kind_is_known(text: str) -> None:
    assert faults.parse(text) is not None
    assert text in faults.LISTED
