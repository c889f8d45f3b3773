"""Raw requests with faults, by the fault."""

import json

from tests.support.raw_connection import connected, request
from tests.support.serving import Answer

ALBUMS, ARTISTS = "/api/v1/albums", "/api/v1/artists"
SECRET = "msvc_ThisMustNeverBeSeenAgain"
AUTH = f"Authorization: Bearer {SECRET}"
JSON = "Content-Type: application/json"
SOUND = b'{"name":"x"}'


def _get(*headers: str) -> bytes:
    return request("GET", ALBUMS, AUTH, *headers)


def _post(*headers: str, body: bytes = SOUND) -> bytes:
    return request("POST", ARTISTS, AUTH, JSON, *headers, body=body)


# Answered with 400, and the connection is closed.
NO_HTTP = {
    "garbage": b"GARBAGE\r\n\r\n",
    "binary": bytes(range(256)) + b"\r\n\r\n",
    "an unknown version": b"GET / HTTP/9.9\r\n\r\n",
    "the earliest form of HTTP": b"GET /api/v1/albums\r\n\r\n",
    "a version to come": b"GET /api/v1/albums HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "a lower-case method": request("get", ALBUMS, AUTH),
    "an invented method": request("BREW", ALBUMS, AUTH),
    "no path": b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a space in the path": b"GET /api/v1/al bums HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path without a slash": request("GET", "api/v1/albums", AUTH),
    "UTF-8 in the path": request("GET", "/api/v1/é", AUTH),
    "Latin-1 in the path": request("GET", "/api/v1/\udce9", AUTH),
    "an absolute target without a host": request("GET", "http://[bad/api/v1/albums", AUTH),
    "an absolute target with an impossible port": request("GET", "http://music.test:99999/", AUTH),
    "GET *": request("GET", "*", AUTH),
    "no Host": b"GET /api/v1/albums HTTP/1.1\r\n" + AUTH.encode() + b"\r\n\r\n",
    "two Hosts": _get("Host: other.test"),
    "bare line feeds": b"GET /api/v1/albums HTTP/1.1\nHost: localhost\n\n",
    "bare carriage returns": b"GET /api/v1/albums HTTP/1.1\rHost: localhost\r\r",
    "NUL in a header": _get("X-Nul: a\0b"),
    "NUL in Authorization": request("GET", ALBUMS, f"{AUTH}\0"),
    "a line feed in Authorization": request("GET", ALBUMS, f"{AUTH}\n"),
    "ESC in a header": _get("X-Esc: a\x1b[31m"),
    "a space before the colon": request("GET", ALBUMS, f"Authorization : Bearer {SECRET}"),
    "no colon": _get(SECRET),
    "a folded header": _get("X-Folded: a\r\n b"),
    "a chunk of no size": _post("Transfer-Encoding: chunked", body=b"zz\r\nxx\r\n"),
    "a chunk of negative size": _post("Transfer-Encoding: chunked", body=b"-5\r\nxx\r\n"),
    "a chunk of absurd size": _post("Transfer-Encoding: chunked", body=b"f" * 30 + b"\r\nxx\r\n"),
    "a chunk longer than it says": _post("Transfer-Encoding: chunked", body=b"2\r\n{}{}\r\n0\r\n\r\n"),
    "a bad chunk where no body is read": _get("Transfer-Encoding: chunked") + b"zz\r\n",
    "two lengths": _post("Content-Length: 12", "Content-Length: 13"),
    "a length twice": _post("Content-Length: 12", "Content-Length: 12"),
    "a length and chunks": _post("Content-Length: 12", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "a negative length": _post("Content-Length: -1"),
    "a length with a sign": _post("Content-Length: +12"),
    "a length in words": _post("Content-Length: twelve"),
    "an absurd length": _post("Content-Length: " + "9" * 40),
    "a transfer coding that is not chunked": _post("Transfer-Encoding: gzip"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
}

# Valid HTTP to a path that does not exist, with its status; the connection is kept.
ODD_TARGETS = {
    "a path id of 5,000 digits": (request("GET", f"{ALBUMS}/{'9' * 5000}"), 404),
    "NUL": (request("GET", f"{ALBUMS}/%00"), 404),
    "a byte that is no UTF-8": (request("GET", f"{ALBUMS}/%ff"), 404),
    "half an escape": (request("GET", "/api/v1/%"), 404),
    "an escaped letter": (request("GET", "/api/v1/%61lbums"), 404),
    "dots": (request("GET", "/api/v1/../v1/albums"), 404),
    "dots out of a folder": (request("GET", "/docs/../../../../etc/passwd"), 404),
    "escaped dots out of a folder": (request("GET", "/docs/..%2f..%2fapp.py"), 404),
    "two slashes before": (request("GET", "//api/v1/albums"), 404),
    "two slashes within": (request("GET", "/api/v1//albums"), 404),
    "ten thousand slashes": (request("GET", "/" * 8000), 404),
    "OPTIONS *": (request("OPTIONS", "*"), 404),
    "CONNECT": (request("CONNECT", "music.test:443"), 404),
    "an absolute target": (request("GET", "http://elsewhere.test/api/v1/albums"), 200),
    "a fragment": (request("GET", f"{ALBUMS}#top"), 200),
    "a long query": (request("GET", f"{ALBUMS}?{'a=1&' * 1900}"), 200),
    "a query of no UTF-8": (request("GET", f"{ALBUMS}?page=%ff"), 422),
    "a text of no UTF-8 to search for": (request("GET", f"{ARTISTS}?q=Bj%f6rk"), 422),
    "half a surrogate pair to search for": (request("GET", f"{ARTISTS}?query=%ed%a0%80"), 422),
    "the sign for what is no UTF-8 to search for": (request("GET", f"{ARTISTS}?q=%ef%bf%bd"), 200),
    "a query with half a surrogate pair": (request("GET", f"{ALBUMS}?page=%ed%a0%80"), 422),
    "a query with NUL": (request("GET", f"{ALBUMS}?page=%00"), 422),
    "a body where none is read": (request("GET", ALBUMS, JSON, body=b'{"x":1}'), 200),
    "an offer of websocket": (request("GET", ALBUMS, "Connection: upgrade", "Upgrade: websocket"), 200),
    "an offer of HTTP/2": (request("GET", ALBUMS, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"), 200),
    "a request id of no ASCII": (request("GET", ALBUMS, "X-Request-Id: \udce9\udcff"), 200),
    "a token of no ASCII": (request("GET", ALBUMS, "Authorization: Bearer \udce9\udcff"), 401),
    "empty lines first": (b"\r\n\r\n" + request("GET", ALBUMS), 200),
    "TRACE": (request("TRACE", ALBUMS, AUTH), 405),
}

# Bodies of POST /artists by an account with access, with their status; the connection is kept.
BODIES = {
    "broken JSON": (b'{"name":', 400),
    "a single quote": (b"{'name': 1}", 400),
    "a byte order mark": (b"\xef\xbb\xbf" + SOUND, 400),
    "UTF-16": (SOUND.decode().encode("utf-16"), 400),
    "invalid UTF-8": (b'{"name":"\xff"}', 400),
    "an overlong form": (b'{"name":"\xc0\xaf"}', 400),
    "a surrogate in UTF-8": (b'{"name":"\xed\xa0\x80"}', 400),
    "half a surrogate pair": (rb'{"name":"\ud800"}', 400),
    "half a surrogate pair as a key": (rb'{"name":"x","\udfff":1}', 400),
    "a surrogate pair": (rb'{"name":"\ud83c\udfb5"}', 201),
    "NaN": (b'{"name":NaN}', 400),
    "infinity": (b'{"name":"x","bpm":-Infinity}', 400),
    "a repeated key": (b'{"name":"a","name":"b"}', 400),
    "a repeated key far below": (b'{"name":"a","more":[{"k":1,"k":1}]}', 400),
    "the same key spelled twice": (rb'{"name":"a","\u006eame":"b"}', 400),
    "two values": (SOUND + SOUND, 400),
    "a comment": (b'{"name":"x"} // x', 400),
    "a raw control character": (b'{"name":"a\nb"}', 400),
    "100,000 brackets": (b"[" * 100_000 + b"]" * 100_000, 400),
    "50,000 objects in each other": (b'{"name":' * 50_000 + b"1" + b"}" * 50_000, 400),
    "100,000 brackets left open": (b'{"name":' + b"[" * 100_000, 400),
    "an integer of 5,000 digits": (b'{"name":' + b"9" * 5000 + b"}", 422),
    "a number beyond doubles": (b'{"name":1e999}', 422),
    "NUL": (rb'{"name":"a\u0000"}', 422),
    "NUL in an unknown field": (rb'{"name":"a","more":[{"k":"\\\u0000"}]}', 422),
    "NUL in a key": (rb'{"name":"a","\u0000":1}', 422),
    "the escape of NUL, escaped": (rb'{"name":"\\u0000"}', 201),
    "a list": (b"[]", 422),
    "a string": (b'"name"', 422),
    "a number": (b"1", 422),
    "null": (b"null", 422),
    "white space around": (b" \r\n\t" + SOUND + b"\n", 201),
    "only white space": (b"  ", 400),
}


def check_sound(answer: Answer) -> None:
    """Assert that the answer is JSON and no internal error, and repeats neither versions nor what was sent."""
    assert answer.status < 500, answer
    assert answer.headers["Server"] == "musicsvc"
    assert answer.headers["X-Request-Id"].isalnum()
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert SECRET not in str(answer)
    body = json.loads(answer.body)
    if answer.status == 401:
        assert body == {"message": "Unauthenticated."}
    elif answer.status >= 400:
        assert list(body) == ["status", "message", "errors"]
        assert body["status"] == "error"


async def check_no_http(root: str) -> None:
    """Assert that each request is answered with 400 and the connection is closed."""
    for name, raw in NO_HTTP.items():
        async with connected(root) as wire:
            await wire.send(raw)
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == 400, name
            assert answer.json == {"status": "error", "message": "The request is not valid HTTP.", "errors": {}}
            assert await wire.rest() == b"", name


async def check_odd_targets(root: str) -> None:
    """Assert that each request has its status and the connection is kept."""
    async with connected(root) as wire:
        for name, (raw, status) in ODD_TARGETS.items():
            await wire.send(raw)
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == status, name


async def check_bodies(root: str, token: str) -> None:
    """Assert that each request has its status and the connection is kept."""
    async with connected(root) as wire:
        for name, (body, status) in BODIES.items():
            await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=body))
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == status, (name, answer.body)
